"""A step word as it is declared, what declarations share, and the registry of all words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias, TypeVar

from memstory.contract.target import (
    Capability,
    Hit,
    Item,
    Query,
    ReceiptItem,
    Ref,
    Request,
    Scope,
    ToolSchema,
    Tree,
)
from memstory.language.matchers.expectable import EXPECTABLE, View
from memstory.language.reading import Reading, TreePath
from memstory.language.registry import Registry
from memstory.language.story import Expectation
from memstory.language.words.shapes import Schema, grammar_of
from memstory.results.recording import StepRecord

LISTS: Final = "add.metadata.lists"
"""The capability that an item calls for whose metadata have lists or mappings."""

Args: TypeAlias = dict[str, Tree]
Value = TypeVar("Value", Item, Query, Ref)
Needs: TypeAlias = Callable[[Any], Iterable[Capability]]


def needs_always(*capabilities: Capability) -> Needs:
    """Return a `needs` that is the same whatever the arguments are."""
    return lambda _: capabilities


def read_nothing(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Return no args, for a word without an argument; the value `false` is a fault."""
    if value is False:
        reading.fault(path, "'false' says nothing here; leave the step out, or leave its value empty")
    return {}


def read_mapping(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Return the mapping that was written, or no args where nothing was."""
    return {**read_nothing(reading, value, path), **(value if isinstance(value, dict) else {})}


def read_named(key: str, **defaults: Tree) -> Callable[[Reading, Any, TreePath], Args]:
    """Return a `read` for a mapping with `defaults`; any other argument is what goes under `key`."""

    def read(_reading: Reading, value: Tree, _path: TreePath) -> Args:
        return {**defaults, **(value if isinstance(value, dict) else {key: value})}

    return read


def as_value(contract: type[Value], args: Mapping[str, Tree]) -> Value:
    """Return an `Item`, `Query` or `Ref` made of those `args` that have the names of its fields."""
    names = {one.name for one in fields(contract)}
    return contract(**{name: value for name, value in args.items() if name in names and value is not None})


def in_list(path: str) -> str:
    """Return a path into a list: where it starts with no number, it is one into the first element.

    >>> in_list("1.id"), in_list("id"), in_list("")
    ('1.id', '0.id', '')
    """
    return f"0.{path}" if path and not path.partition(".")[0].isdigit() else path


def in_items(path: str) -> str:
    """Return a path into the items of a receipt, of which the first is meant where no number says which."""
    return f"items.{in_list(path)}" if path and path.partition(".")[0] != "items" else path


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One step word: what a story writes, what is done then, and what its result is.

    Attributes:
        name: The word, such as `add`.
        summary: What it does, in a few words without a full stop.
        example: Steps in YAML that use it.
        argument: The type of what stands beside the word; the grammar follows from it.
        forms: The ways to write the argument, in words.
        read: (reading, argument, its path) -> the `args` of the step: a mapping, in one form.
        inner_steps: argument -> (key, steps) of the steps within it, or None.
        saved_names: argument -> the names that are saved from within it, each with a path in the recorded result.
        request: (args, scope) -> what the target is asked; None if the harness does it by itself.
        capabilities: What a target may have to be able to do, with meanings; a name with a dot at its end is a family.
        needs: args -> which capabilities they call for; None for the first.
        needs_to_judge: By field of the result: matchers -> which capabilities they call for.
        results: The fields that `expect:` can check, each with its view of the record.
        path_in_record: Path of `save:` -> path in the recorded result.
        saved_from: The class of the memories in its result, whose fields `save:` can name; None for any other result.
        has_named_results: Whether the recorded result has its fields by name, and is not the one field itself.
        refusal: record -> the text with which the target refused, or None.
        faults: (record, announced tools) -> (field, check, message) of what is wrong whatever is expected.
        check_expectation: (reading, args, expectation, its path): called for each expectation when it is read.
        not_inside: The words whose inner steps it cannot be among.
        is_loop: Whether `${i}` counts the passes of its inner steps.
        has_user: Whether it acts for a user.
        in_session: Whether it happens in the user's session, and not in all of them.
        settles: Whether the harness waits for background work afterwards, so that no story is a race.
        may_name_paths: Whether a text in `args` may be a path.
    """

    name: str
    summary: str
    example: str
    argument: Any
    forms: str = ""
    read: Callable[[Reading, Any, TreePath], Args] = read_nothing
    inner_steps: Callable[[Tree], tuple[str, Tree] | None] = lambda _: None
    saved_names: Callable[[Tree], Mapping[str, str]] = lambda _: {}
    request: Callable[[Mapping[str, Tree], Scope], Request[Any]] | None = None
    capabilities: Mapping[Capability, str] = field(default_factory=dict)
    needs: Needs | None = None
    needs_to_judge: Mapping[str, Needs] = field(default_factory=dict)
    results: Mapping[str, View] = field(default_factory=dict)
    path_in_record: Callable[[str], str] = str
    saved_from: type[Hit | ReceiptItem] | None = None
    has_named_results: bool = False
    refusal: View = lambda record: record.error
    faults: Callable[[StepRecord, Sequence[ToolSchema]], Iterable[tuple[str, str, str]]] = lambda _record, _tools: ()
    check_expectation: Callable[[Reading, Args, Expectation, TreePath], None] = lambda *_: None
    not_inside: Sequence[str] = ()
    is_loop: bool = False
    has_user: bool = True
    in_session: bool = False
    settles: bool = False
    may_name_paths: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a result that no expectation can check."""
        if unknown := [*self.results.keys() - EXPECTABLE.keys()]:
            raise ValueError(
                f"the step '{self.name}' has a result '{unknown[0]}', which is not an expected field. Known: "
                f"{', '.join(sorted(EXPECTABLE))}; add it to EXPECTABLE in matchers/expectable.py, or take one of these"
            )

    @property
    def grammar(self) -> Schema:
        """The JSON Schema of its argument."""
        return {"title": f"argument of {self.name}", **grammar_of(self.argument)}

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys of an argument that is a mapping, each with what it means."""
        return {name: one.get("description", "") for name, one in self.grammar.get("properties", {}).items()}

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of its result, without what it costs."""
        return tuple(name for name in self.results if not EXPECTABLE[name].is_measure)

    @property
    def is_timed(self) -> bool:
        """Whether its time is time that a memory works for a user; other steps mostly wait."""
        return self.has_user and self.request is not None and bool(self.results)

    @property
    def expectable(self) -> tuple[str, ...]:
        """The names of all that `expect:` can check in its result and cost."""
        more = (one.name for one in EXPECTABLE.values()
                if one.is_everywhere or (one.is_measure and one.name in self.results))  # fmt: skip
        return (*self.fields, *more)

    def saved_path(self, path: str) -> str:
        """Return the path in the recorded result for a path of `save:`, such as `hits.0.id`."""
        head, _, rest = path.partition(".")
        is_field_itself = head in self.fields and not self.has_named_results
        return self.path_in_record(rest if is_field_itself else path)

    def unknown_field(self, path: str) -> str | None:
        """Return what a path in the recorded result asks of a memory that no memory has; None if it has that."""
        if self.saved_from is None:
            return None
        steps = [part for part in path.split(".") if part and not part.isdigit()]
        asked = steps[1:] if steps[:1] == ["items"] else steps
        return asked[0] if asked and asked[0] not in self.memory_fields else None

    @property
    def memory_fields(self) -> tuple[str, ...]:
        """The names of what `save:` can take of each memory in the result."""
        return tuple(one.name for one in fields(self.saved_from)) if self.saved_from else ()

    def value(self, name: str, record: StepRecord) -> Tree:
        """Return the value of the field `name`, for its matchers."""
        view = self.results.get(name) or EXPECTABLE[name].view
        return view(record) if view else record.result

    def capabilities_for(self, args: Mapping[str, Tree], expect: Sequence[Expectation]) -> frozenset[Capability]:
        """Return the capabilities that a target needs for a step with these args and expectations."""
        judging = [self.needs_to_judge[one.field](one.matchers) for one in expect if one.field in self.needs_to_judge]
        own = self.needs(args) if self.needs else [*self.capabilities][:1]
        if any(one.field in ("error", "refusal") for one in expect):
            # What a target may refuse, it need not keep.
            own = [name for name in own if name != LISTS]
        return frozenset(own).union(*judging)


WORDS: Registry[Word] = Registry("step")


def whole_record(record: StepRecord) -> Tree:
    """Return the recorded result, as the view of a field."""
    return record.result
