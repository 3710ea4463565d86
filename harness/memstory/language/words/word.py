"""A step word, declared once: everything that the harness knows about it, and the registry of all words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias, TypeVar

from memstory.contract.target import Capability, Item, Query, Ref, Request, Scope, ToolSchema, Tree
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
    """Return a function that names these, whatever it is asked about."""
    return lambda _: capabilities


def read_nothing(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Read the argument of a word that takes none."""
    if value is False:
        reading.fault(path, "'false' says nothing here; leave the step out, or leave its value empty")
    return {}


def read_mapping(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Read an argument that is a mapping, or nothing."""
    return {**read_nothing(reading, value, path), **(value if isinstance(value, dict) else {})}


def read_named(key: str, **defaults: Tree) -> Callable[[Reading, Any, TreePath], Args]:
    """Return how an argument is read that is a mapping, or in short only what goes under `key`."""

    def read(_reading: Reading, value: Tree, _path: TreePath) -> Args:
        return {**defaults, **(value if isinstance(value, dict) else {key: value})}

    return read


def as_value(contract: type[Value], args: Mapping[str, Tree]) -> Value:
    """Return a value of the contract, such as an `Item`, whose fields are those of `args` that have their names."""
    names = {one.name for one in fields(contract)}
    return contract(**{name: value for name, value in args.items() if name in names and value is not None})


def in_list(path: str) -> str:
    """Return the path into a list, of which the first element is meant where no number says which.

    >>> in_list("1.id"), in_list("id"), in_list("")
    ('1.id', '0.id', '')
    """
    return f"0.{path}" if path and not path.partition(".")[0].isdigit() else path


def in_items(path: str) -> str:
    """Return the path into a receipt, of which the items are meant."""
    return f"items.{in_list(path)}" if path and path.partition(".")[0] != "items" else path


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One step word.

    What a story writes: `argument` is the type of what stands beside the word, `forms` says in words how it can be
    written; `read` makes a mapping of it, the `args` of a step. `inner` finds the steps within it, `saves` the names
    that it saves itself.

    What is done: `request` makes of the arguments and the scope what the target is asked; a word without one is the
    harness's own. `able` describes the capabilities that the word calls for, a whole family where the name ends with
    a dot; `needs` says which of them the arguments call for (the first, if it is left out), `needs_to_judge` which the
    matchers of a result.

    Its result: `results` are the fields that `expect:` may speak of, each with its view on the record. The
    recorded result is the one field itself, unless it `names_results`; `leads` says where a path of `save:` goes on in
    it. `refusal` and `faults` find in a record what the target refused, and (field, check, fault) that no expectation
    has to name; `expecting` looks at each expectation as it is read.

    Where it may be: `barred_in` names the words that it cannot be inside, `counts` says that `${i}` counts its
    passes, `has_user` that it acts for a user, `in_session` that it happens in the user's session and not in all of
    them, `is_settled` that the harness waits for background work afterwards, so that no story is a race,
    `names_paths` that a text in its `args` may be a path.
    """

    name: str
    summary: str
    example: str
    argument: Any
    forms: str = ""
    read: Callable[[Reading, Any, TreePath], Args] = read_nothing
    inner: Callable[[Tree], tuple[str, Tree] | None] = lambda _: None
    saves: Callable[[Tree], Mapping[str, str]] = lambda _: {}
    request: Callable[[Mapping[str, Tree], Scope], Request[Any]] | None = None
    able: Mapping[Capability, str] = field(default_factory=dict)
    needs: Needs | None = None
    needs_to_judge: Mapping[str, Needs] = field(default_factory=dict)
    results: Mapping[str, View] = field(default_factory=dict)
    leads: Callable[[str], str] = str
    names_results: bool = False
    refusal: View = lambda record: record.error
    faults: Callable[[StepRecord, Sequence[ToolSchema]], Iterable[tuple[str, str, str]]] = lambda _record, _tools: ()
    expecting: Callable[[Reading, Args, Expectation, TreePath], None] = lambda *_: None
    barred_in: Sequence[str] = ()
    counts: bool = False
    has_user: bool = True
    in_session: bool = False
    is_settled: bool = False
    names_paths: bool = False

    def __post_init__(self) -> None:
        """Refuse a result that no expectation could speak of."""
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
        """The fields of its result, without what a step costs."""
        return tuple(name for name in self.results if not EXPECTABLE[name].is_measure)

    @property
    def is_timed(self) -> bool:
        """Whether its time is that of a memory's work for a user; the others mostly wait."""
        return self.has_user and self.request is not None and bool(self.results)

    @property
    def expectable(self) -> tuple[str, ...]:
        """Everything that `expect:` may speak of."""
        more = (one.name for one in EXPECTABLE.values()
                if one.is_everywhere or (one.is_measure and one.name in self.results))  # fmt: skip
        return (*self.fields, *more)

    def saved_path(self, path: str) -> str:
        """Return where a path of `save:` leads in the recorded result."""
        head, _, rest = path.partition(".")
        is_field_itself = head in self.fields and not self.names_results
        return self.leads(rest if is_field_itself else path)

    def value(self, name: str, record: StepRecord) -> Tree:
        """Return what an expectation on the field of this name speaks of."""
        view = self.results.get(name) or EXPECTABLE[name].view
        return view(record) if view else record.result

    def needed(self, args: Mapping[str, Tree], expect: Sequence[Expectation]) -> frozenset[Capability]:
        """Return the capabilities that a step with these arguments and expectations calls for."""
        judging = [self.needs_to_judge[one.field](one.matchers) for one in expect if one.field in self.needs_to_judge]
        own = self.needs(args) if self.needs else [*self.able][:1]
        if any(one.field in ("error", "refusal") for one in expect):
            # What a target may refuse, it need not keep.
            own = [name for name in own if name != LISTS]
        return frozenset(own).union(*judging)


WORDS: Registry[Word] = Registry("step")


def whole_record(record: StepRecord) -> Tree:
    """Return the recorded result as it is."""
    return record.result
