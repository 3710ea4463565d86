"""Which method does what, and what goes into which parameter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Annotated, Any, Literal

import pytest
from typing_extensions import TypedDict  # whose classes refuse issubclass, unlike those of typing

from memstory.targets.objects.methods import methods_of


def traced(made):
    @wraps(made)
    def traced_method(*args, **kwargs):
        return made(*args, **kwargs)

    return traced_method


class Plain:
    def add(self, text, user_id): ...
    def search(self, query, user_id, limit=5): ...
    def get(self, memory_id): ...
    def update(self, memory_id, data): ...
    def delete(self, memory_id): ...
    def delete_all(self, user_id): ...


class OtherNames:
    @traced
    def remember(self, fact: str, *, owner: str): ...
    async def recall(self, question, owner, top_k=None): ...
    def get_all_memories(self, owner): ...
    def forget_memory(self, uuid, /): ...
    def flush(self): ...
    @property
    def all(self):
        raise AssertionError("a property is no method")

    def save(self): ...


class Wrapper:
    @staticmethod
    def add(text, **kwargs): ...
    @classmethod
    def search(cls, *args, user_id=None): ...


def given(kind, operation, **values):
    return methods_of(kind).of(operation).arguments(values)


@pytest.mark.parametrize(
    ("kind", "operation", "values", "placed", "named"),
    [
        (Plain, "add", {"text": "t", "user": "ann"}, [], {"text": "t", "user_id": "ann"}),
        (Plain, "search", {"query": "q", "user": "ann"}, [], {"query": "q", "user_id": "ann"}),
        (Plain, "search", {"query": "q", "user": "ann", "limit": 3}, [], {"query": "q", "user_id": "ann", "limit": 3}),
        (Plain, "update", {"id": 7, "text": "t"}, [], {"memory_id": 7, "data": "t"}),
        (OtherNames, "add", {"text": "t", "user": "ann"}, [], {"fact": "t", "owner": "ann"}),
        (OtherNames, "search", {"query": "q", "user": "ann"}, [], {"question": "q", "owner": "ann"}),
        (OtherNames, "delete", {"id": 7}, [7], {}),
        (Wrapper, "add", {"text": "t", "user": "ann"}, [], {"text": "t", "user_id": "ann"}),
        (Wrapper, "search", {"query": "q", "user": "ann"}, ["q"], {"user_id": "ann"}),
    ],
)
def test_arguments_go_into_the_parameters_that_are_named_for_them(kind, operation, values, placed, named):
    assert given(kind, operation, **values) == (placed, named)


def test_methods_are_known_by_other_names_and_with_a_word_behind():
    known = {operation: method.name for operation, method in methods_of(OtherNames).known.items()}
    assert known == {
        "add": "remember",
        "search": "recall",
        "list": "get_all_memories",
        "delete": "forget_memory",
        "settle": "flush",
    }


def test_a_required_parameter_of_an_unknown_name_takes_what_is_missing():
    class Unusual:
        def add(self, words): ...
        def search(self, words, amount=3): ...
        def update(self, which, words): ...

    assert given(Unusual, "add", text="t", user="ann") == ([], {"words": "t"})
    assert given(Unusual, "search", query="q", text="q") == ([], {"words": "q"})
    assert given(Unusual, "update", id="m1", text="t") == ([], {"which": "m1", "words": "t"})


def test_a_method_that_needs_more_than_is_known_is_not_used_and_named():
    class Demanding:
        def add(self, text, colour): ...
        def search(self, query): ...

    methods = methods_of(Demanding)
    assert "add" not in methods.known
    assert methods.others == ["add(text, colour): 'colour' is not known"]


class Content: ...


class Message(TypedDict):
    role: str


@pytest.mark.parametrize(
    ("kind", "name"), [(Content, "Content"), ("Content", "Content"), (list[str], "list[str]"), (Message, "Message")]
)
def test_a_method_that_takes_another_type_than_a_text_is_not_used_and_named(kind, name):
    class Typed:
        def add(self, content): ...
        def search(self, query: str | Content): ...

    Typed.add.__annotations__["content"] = kind
    methods = methods_of(Typed)
    assert list(methods.known) == ["search"]
    assert methods.others == [f"add(content): 'content' takes {name}, not a text"]


@pytest.mark.parametrize(
    "kind", [str | None, "Content | str", object, Any, "Elsewhere", Sequence[str], Annotated[str, 1], Literal["a"]]
)
def test_a_type_that_a_text_may_be_or_that_nobody_knows_is_given_a_text(kind):
    class Typed:
        def add(self, content): ...
        def search(self, query): ...

    Typed.add.__annotations__["content"] = kind
    assert "add" in methods_of(Typed).known


@pytest.mark.parametrize("kind", ["__import__('not_installed').Tensor", "{}['kind']", "int('text')"])
def test_a_type_that_fails_as_it_is_read_does_not_tell(kind):
    class Typed:
        def add(self, content): ...
        def search(self, query): ...

    Typed.add.__annotations__["content"] = kind
    assert "add" in methods_of(Typed).known


@pytest.mark.parametrize("kind", [tuple[str, ...], tuple, Sequence[str], list[str]])
def test_what_takes_a_tuple_of_texts_takes_texts(kind):
    class Store:
        def add(self, texts): ...
        def search(self, query): ...

    Store.add.__annotations__["texts"] = kind
    assert "add" in methods_of(Store).known


def test_a_type_is_shown_in_few_words():
    class Store:
        def add(self, content): ...

    Store.add.__annotations__["content"] = "list[Content] | " * 20 + "Message"
    (said,) = methods_of(Store).others
    assert said.startswith("add(content): 'content' takes list[Content] |")
    assert len(said) < 100


@pytest.mark.parametrize("kind", ["Content", "Message"])
def test_a_list_of_another_type_takes_no_texts(kind):
    class Store:
        def write_documents(self, documents): ...
        def search(self, query): ...

    Store.write_documents.__annotations__["documents"] = f"list[{kind}]"
    methods = methods_of(Store)
    assert methods.others == [f"write_documents(documents): 'documents' takes list[{kind}], not texts"]


def test_what_lacks_a_parameter_is_told_so():
    class Session:
        def add(self, text): ...
        def search(self, query): ...
        def get_items(self, limit=None): ...

    assert methods_of(Session).others == ["get_items(limit): it takes no id"]


def test_a_user_is_given_to_nothing_where_what_adds_takes_none():
    class Scoped:
        def put(self, text): ...
        def find(self, query, *, scope=None): ...

    assert given(Scoped, "search", query="q", user="ann") == ([], {"query": "q"})


def test_a_deletion_that_names_only_a_user_is_one_of_all():
    class Forgetful:
        def add(self, text, user): ...
        def search(self, query, user): ...
        def forget(self, user): ...

    assert set(methods_of(Forgetful).known) == {"add", "search", "delete_all"}


def test_a_list_without_users_is_not_used_where_there_are_users():
    class Open:
        def add(self, text, user): ...
        def search(self, query, user): ...
        def list(self): ...

    methods = methods_of(Open)
    assert "list" not in methods.known
    assert methods.others == ["list(): it takes no user"]


def test_a_method_that_does_not_tell_its_parameters_is_called_by_place():
    class Builtin(dict):
        def add(self, text): ...
        def search(self, query): ...

    assert given(Builtin, "get", id="m1") == (["m1"], {})


@pytest.mark.parametrize(("name", "value"), [("messages", [{"role": "user", "content": "t"}]), ("texts", ["t"])])
def test_a_text_is_wrapped_for_a_method_that_takes_several(name, value):
    kind = type("Several", (), {})
    exec(f"def add(self, {name}): ...", made := {})  # noqa: S102  (a parameter of a given name)
    kind.add = made["add"]
    assert given(kind, "add", text="t", texts=["t"], messages=[{"role": "user", "content": "t"}]) == ([], {name: value})
