"""The checks of `expect:`, each declared once in the module of its family. They are pure: value -> `Finding`."""

from __future__ import annotations

from typing import Final

from memstory.language.matchers import contents, structures, talk
from memstory.language.matchers.calls import CALL_CHECKS
from memstory.language.matchers.check import MATCHERS, Check, Context, Finding, matcher
from memstory.language.matchers.expectable import EXPECTABLE, judge
from memstory.language.matchers.hits import HIT_CHECKS, HIT_FIELDS
from memstory.language.matchers.means import METRICS

__all__ = [
    "CALL_CHECKS",
    "EXPECTABLE",
    "HIT_CHECKS",
    "HIT_FIELDS",
    "MATCHERS",
    "METRICS",
    "Check",
    "Context",
    "Finding",
    "calls",
    "check",
    "expectable",
    "hits",
    "judge",
    "matcher",
    "means",
    "talk",
]

# Importing these fills the table of matchers.
_FAMILIES: Final = (contents, structures, talk)
