"""A story after it was read: frozen values, each with its place in the file as `mark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memstory.contract.errors import Mark
from memstory.contract.target import Capability, Tree
from memstory.results.outcomes import Harm
from memstory.results.redaction import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """A check of one value, such as `contains`, `equals` or `not`, with its argument.

    `argument` is plain JSON, except where a matcher holds matchers:

    - `not`, `length`, and `count` and `text` of hits: a group, which is a tuple of matchers that must all hold;
    - `all` and `any`: a group for the elements of a list, or a tuple of groups for the value itself;
    - `fields`, and `scores` and `explain` of named hits: a mapping from names to groups;
    - `occurs`: a tuple of pairs, a text or a group on elements, and a group on how often;
    - `first`, `includes`, `excludes`, `order`: a tuple of entries, each a saved name or a mapping from hit fields to
      groups;
    - checks of tool calls: a tuple of `CallPattern`, or for `any_of` a tuple of such tuples.
    """

    name: str
    argument: Any
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPattern:
    """An expected tool call: the name of the tool, and the groups of matchers by name of argument."""

    name: str
    args: Mapping[str, Sequence[Matcher]]
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one field of a step's result must be: all `matchers` must hold.

    `field` is a name of `EXPECTABLE`, or `metrics`. A backend that cannot settle is asked again for
    `eventually_seconds`; None for once.
    """

    field: str
    matchers: Sequence[Matcher]
    mark: Mark
    eventually_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: an operation with its arguments, and the expectations of its result.

    Attributes:
        op: The step word.
        args: Its arguments as `Word.read` returns them: `say: tea` has `{"text": "tea"}`, `add` has `{"items": [...]}`.
        mark: Its place in the file.
        user: Who acts; None for the user of the story.
        session: The session in which it happens, if the step names one.
        save: Name -> dotted path in `StepRecord.result`, where "" is the whole result.
        expect: What its result must be.
        forbid: Texts that must not be found anywhere after it.
        steps: The steps within it, such as those that a `crash` interrupts.
    """

    op: str
    args: Mapping[str, Tree]
    mark: Mark
    user: str | None = None
    session: str | None = None
    save: Mapping[str, str] = field(default_factory=dict)
    expect: Sequence[Expectation] = ()
    forbid: Sequence[str] = ()
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """A retrieval task: either `corpus` and `queries`, or a `dataset` with its `path`; `preloaded`, without a corpus.

    Attributes:
        mark: Its place in the file.
        k: The number of results that are scored.
        corpus: A JSONL file of documents, relative to the story.
        queries: A JSONL file of queries.
        dataset: The name of a known data set.
        path: Where the data set is.
        kind: The kind of memory to add the documents as.
        where: Field of a row -> its value, or a list of values, to select rows of the corpus and the queries.
        distractors: A JSONL file to draw distractors from.
        split: A part of the data set.
        unit: What one memory is: `turn`, `round` or `session`.
        within: Seconds after which a target is unsupported that has not remembered and answered everything.
        cuts: More numbers of results that are scored.
        labels: `audited` for scores by the labels of an audit too.
        preloaded: Whether the memory is filled already, and only asked.
        user: Whose memories a preloaded memory is asked for.
        ids: What of a hit of a preloaded memory is the id that labels name: `id`, `key`, or a field of its metadata.
        sample: How many of the questions are asked, None for all.
        seed: Which of the samples of that size is drawn.
    """

    mark: Mark
    k: int = 10
    corpus: str | None = None
    queries: str | None = None
    dataset: str | None = None
    path: str | None = None
    kind: str | None = None
    where: Mapping[str, Tree] = field(default_factory=dict)
    distractors: str | None = None
    split: str | None = None
    unit: str = "turn"
    within: float | None = None
    cuts: Sequence[int] = ()
    labels: str | None = None
    preloaded: bool = False
    user: str | None = None
    ids: str = "id"
    sample: int | None = None
    seed: int = 0

    @property
    def depth(self) -> int:
        """How many results a memory is asked for."""
        return max(self.k, *self.cuts, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """How often a case runs, and how many of the runs must pass."""

    count: int = 1
    at_least: int = 1

    def times(self, count: int) -> Trials:
        """Return `count` trials that ask for as large a share, rounded up.

        >>> Trials(count=5, at_least=5).times(2), Trials(count=5, at_least=4).times(20)
        (Trials(count=2, at_least=2), Trials(count=20, at_least=16))
        """
        return Trials(count=count, at_least=-(-self.at_least * count // self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A story: one YAML document, or one row of its `parametrize`.

    The fields have the names of the keys in the document, except:

    Attributes:
        mark: Its place in the file.
        digest: A hash of the document as it is written, and of the row.
        needs: All capabilities that a target needs: of steps, expectations, keys and `requires`.
        control: Name of a control -> its intended outcome, `passed` or `failed`.
        control_because: The reason for that.
        settles: Whether the harness waits for background work by itself.
        row: The name of the row; None for a document without rows.
    """

    id: str
    title: str
    mark: Mark
    digest: str
    tags: Sequence[str] = ()
    covers: Sequence[str] = ()
    targets: Sequence[str] = ()
    needs: frozenset[Capability] = frozenset()
    options: Mapping[str, Tree] = field(default_factory=dict)
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    model: Sequence[Mapping[str, Tree]] = ()
    steps: Sequence[Step] = ()
    retrieval: Retrieval | None = None
    perturb: Mapping[str, Tree] = field(default_factory=dict)
    expect: Sequence[Expectation] = ()
    measure: bool = False
    trials: Trials = Trials()
    control: Mapping[str, str] = field(default_factory=dict)
    control_because: str | None = None
    settles: bool = True
    redact: Level = "none"
    harm: Harm | None = None
    slug: str | None = None
    precondition: str | None = None
    row: str | None = None
    notes: str | None = None
