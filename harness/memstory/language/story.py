"""A story as the rest of the harness sees it: frozen, and each part knows its place in the file."""

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
    """One test of one value, such as `contains`, `equals` or `not`.

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
    """A tool call that a story waits for; `args` maps argument names to groups of matchers."""

    name: str
    args: Mapping[str, Sequence[Matcher]]
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one field of a step's result must be: all `matchers` must hold.

    `field` is `answer`, `tool_calls`, `receipt`, `hits`, `text`, `result`, `tools`, `data`, `error`, `metrics` or a
    budget. `eventually_seconds` lets a backend that cannot settle be asked again.
    """

    field: str
    matchers: Sequence[Matcher]
    mark: Mark
    eventually_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: an operation with its arguments, and what is said about its result.

    `args` are the operation's own, in the one form that `Word.read` makes of them (`say: text` is `{"text": text}`,
    `add` is `{"items": [...]}`); `steps` are the inner steps of `parallel` and `repeat`, and what a `crash` falls into.
    `forbid` are texts that nothing may hold when it is done.
    `save` maps a name to a dotted path in `StepRecord.result` as it is recorded, where "" is the whole result.
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
    """A retrieval task as the story names it: either `corpus` and `queries`, or a `dataset` with its `path`.

    `where` selects rows of a corpus and its queries; `distractors` is a file to draw those from; `split` and `unit`
    belong to data sets that have such, and so does an audit of their `labels`. Beside the first `k`, scores look at
    each of the `cuts`; as many as the largest are asked for. A target that cannot remember and answer everything
    `within` so many seconds is left out.
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
    """One YAML document.

    `needs` is every capability that the steps and expectations call for, together with `requires`. `digest` is a hash
    of the document as written. `control` maps a control's name to the outcome it is meant to have (`passed`, `failed`),
    for the reason `control_because`. One with `measure` takes scores and is not judged. `settles` is False where the
    story itself says when the target is to settle. `redact` is what it asks to be taken out of its results, at least.
    `harm` is what a failure does to a user; `slug` is a readable name beside the id, and
    `precondition` the id of a story that says what this one builds on.
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
