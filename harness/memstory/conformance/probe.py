"""What a target can do, found out by trying it: each capability by the suite's own test, on throw-away users."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from time import monotonic
from typing import Final
from unittest import SkipTest

from memstory.conformance import CHECKED, ELSEWHERE, TargetContract
from memstory.contract.errors import MemstoryError, NotSupported, SetupError
from memstory.contract.target import Capability, TargetFactory, Tree
from memstory.language.capabilities import NEEDS_ITS_OWN
from memstory.running.endings import describe_error
from memstory.running.watchdog import interrupted_after

BASICS: Final = ("add", "search")
"""What every other test needs, whatever it is about."""

_OPTION: Final = "option."
OVER: Final = "the time was over before it was tried to the end"
"""Why there is no answer about a capability that was not reached."""

_AWAITED: Final = Counter(
    need for names in CHECKED.values() for name in names for need in getattr(TargetContract, name).given
)
"""How many tests need a capability beside their own: it is tried before what none waits for, for time may run out."""

_OF_TARGETS: Final = ("memstory.running.hosting", "memstory.targets", "memstory.controls")
"""The modules through which all goes that a target does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedCapability:
    """Whether a capability holds, None where nothing could tell, and why not; `is_promised` by the target itself."""

    capability: Capability
    is_promised: bool
    holds: bool | None
    why: str = ""


class _Suite(TargetContract):
    @classmethod
    def suppose(cls, words: frozenset[Capability], options: Mapping[str, Tree]) -> None:
        """Take these as declared from now on, and open the target with these options."""
        cls._words, cls.options = words, options


def untold(factory: TargetFactory, options: Mapping[str, Tree]) -> frozenset[Capability]:
    """Return what a target does not promise, and a test can find out."""
    beside = {word for word in CHECKED if not word.endswith(".")} - factory.capabilities(options)
    return frozenset(beside - (NEEDS_ITS_OWN if factory.shares(options) else set()))


def probe(
    factory: TargetFactory, options: Mapping[str, Tree], *, seconds: float, promises: bool = True
) -> Sequence[ProbedCapability]:
    """Try what a target promises, and all that nothing promises and has a test, for it may hold too.

    A test that needs another capability waits until that is found to hold, or is promised. What was not tried when
    `seconds` are over has no answer, nor has what waits for it. Without `promises`, only that which nothing promises
    is tried.

    Where the target lets several cases have one server, so do the tests that can.

    Raises:
        MemstoryError: the target cannot be opened here at all.
        RuntimeError: a test of memstory itself broke; it is named.
    """
    promised = factory.capabilities(options)
    left = {*untold(factory, options), *(word for word in promised if promises and not word.startswith(_OPTION))}
    found: dict[Capability, ProbedCapability] = {}

    def note(word: Capability, *, holds: bool | None, why: str) -> None:
        found[word] = ProbedCapability(capability=word, is_promised=word in promised, holds=holds, why=why)
        left.discard(word)

    suite: type[_Suite] = type("Probe", (_Suite,), {"factory": lambda *_: factory, "options": options})
    able, broken, end = promised, set[Capability](), monotonic() + seconds
    suite.setup_class()
    try:
        _open(suite(), factory.name)
        while ready := [word for word in sorted(left) if not _lacks(word, able - broken)]:
            # What neither takes nor finds a text shows nothing else.
            for word in sorted(ready, key=lambda word: (word not in BASICS, -_AWAITED[word])):
                if word not in BASICS and _lacks(word, able - broken):
                    continue
                suite.suppose(able | {word}, _cheap_options(factory, options, word))
                holds, why = _try_capability(suite(), word, end)
                note(word, holds=holds, why=why)
                broken |= {word} if word in BASICS and holds is False else set()
            able |= {word for word in ready if word in found and found[word].holds}
    finally:
        suite.teardown_class()
    for word in sorted(left):
        lacks = _lacks(word, able - broken)
        is_late = any(need in found and found[need].why == OVER for need in lacks)
        note(word, holds=None, why=OVER if is_late else f"not tried, for it needs {', '.join(lacks)}")
    return [found[word] for word in sorted(found)]


def _cheap_options(factory: TargetFactory, options: Mapping[str, Tree], word: Capability) -> Mapping[str, Tree]:
    needs = {word, *(need for name in _tests(word) for need in getattr(TargetContract, name).given)}
    return options if needs & NEEDS_ITS_OWN else factory.cheapest_options(options, frozenset(needs))


def _open(suite: TargetContract, name: str) -> None:
    try:
        suite.test_a_target_says_what_it_is()
    except MemstoryError:
        raise
    except Exception as error:
        raise SetupError(f"{name} cannot be opened: {describe_error(error)}") from error


def _tests(word: Capability) -> Sequence[str]:
    return CHECKED.get(word) or CHECKED.get(_family(word), ())


def _family(word: Capability) -> str:
    return f"{word.partition('.')[0]}."


def _lacks(word: Capability, able: AbstractSet[Capability]) -> Sequence[Capability]:
    """Return what the tests of a capability need beside it, and is not there."""
    return [need for name in _tests(word) for need in getattr(TargetContract, name).given if need not in able]


def _try_capability(suite: TargetContract, word: Capability, end: float) -> tuple[bool | None, str]:
    """Return whether a capability holds, and why not; it is left in the middle when the clock comes to `end`."""
    if not _tests(word):
        return None, f"only stories can tell: {ELSEWHERE.get(word) or ELSEWHERE[_family(word)]}"
    try:
        for name in _tests(word):
            if (seconds := end - monotonic()) > 0:
                with interrupted_after(seconds):
                    getattr(suite, name)()
    except SkipTest as error:
        return None, str(error)
    except (AssertionError, NotSupported, SetupError) as error:
        return False, str(error)
    except Exception as error:
        # Whatever a backend does, the next capability is tried; what breaks in the test itself says nothing of it.
        if monotonic() >= end:
            return None, OVER
        if not isinstance(error, MemstoryError) and not _is_of_the_target(error):
            raise RuntimeError(f"memstory's own test of '{word}' broke: {describe_error(error)}") from error
        return False, describe_error(error)
    return (True, "") if monotonic() < end else (None, OVER)


def _is_of_the_target(error: BaseException) -> bool:
    """Return whether an error came through a target, or through code that is neither memstory's nor Python's own."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        package = module.partition(".")[0]
        if module.startswith(_OF_TARGETS) or package not in {"memstory", *sys.stdlib_module_names}:
            return True
    return False
