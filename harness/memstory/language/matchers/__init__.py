"""Expectation -> finding: one module for each family of results. Pure: values in, findings out."""

from __future__ import annotations

from memstory.language.matchers import structures, texts
from memstory.language.matchers.calls import judge_calls
from memstory.language.matchers.finding import Context, Finding
from memstory.language.matchers.hits import judge_hits
from memstory.language.matchers.matching import judged, known_checks, resolved
from memstory.language.story import Matcher
from memstory.target import Json

__all__ = ["Context", "Finding", "judge", "known_checks"]

# Importing these two fills the table of matchers.
_FAMILIES = (structures, texts)


def judge(field: str, value: Json, matcher: Matcher, context: Context) -> Finding:
    """Judge one matcher of the expectation on `field` of a result."""
    matcher = resolved(matcher, context.names)
    if field == "hits":
        return judge_hits(value, matcher, context)
    if field == "tool_calls":
        return judge_calls(value, matcher, context)
    return judged(value, matcher, context)
