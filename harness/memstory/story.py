"""A story as the rest of the harness sees it: frozen, with the place in the file where each part was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memstory.errors import Mark
from memstory.target import Capability, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One test of one value, such as `contains`, `equals` or `not`.

    `argument` is plain JSON, except for the matchers that hold matchers (`not`, `all`, `any`, `occurs`, hits' fields,
    tool arguments), where it is a Matcher, a tuple of them, or a mapping to them.
    """

    name: str
    argument: Any
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one field of a step's result must be: every one of `matchers` must hold.

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

    `args` are the operation's own (already normalised: `say: text` is `{"text": text}`, `add` is `{"items": [...]}`);
    `steps` are the inner steps of `parallel` and `repeat`; `save` maps a name to a dotted path in the result.
    """

    op: str
    args: Mapping[str, Json]
    mark: Mark
    user: str | None = None
    session: str | None = None
    save: Mapping[str, str] = field(default_factory=dict)
    expect: Sequence[Expectation] = ()
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """A retrieval task as the story names it: either `corpus` and `queries`, or a `dataset` with its `path`."""

    mark: Mark
    k: int = 10
    corpus: str | None = None
    queries: str | None = None
    dataset: str | None = None
    path: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """How often a case runs, and how many of the runs must pass."""

    count: int = 1
    at_least: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One YAML document.

    `needs` is every capability that the steps and expectations call for, together with `requires`. `digest` is a hash
    of the document as written. `control` maps a control's name to the outcome it is meant to have.
    """

    id: str
    title: str
    mark: Mark
    digest: str
    tags: Sequence[str] = ()
    covers: Sequence[str] = ()
    targets: Sequence[str] = ()
    needs: frozenset[Capability] = frozenset()
    options: Mapping[str, Json] = field(default_factory=dict)
    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    model: Sequence[Mapping[str, Json]] = ()
    steps: Sequence[Step] = ()
    retrieval: Retrieval | None = None
    perturb: Mapping[str, Json] = field(default_factory=dict)
    expect: Sequence[Expectation] = ()
    trials: Trials = Trials()
    control: Mapping[str, str] = field(default_factory=dict)
    row: str | None = None
    notes: str | None = None
