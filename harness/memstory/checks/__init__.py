"""Expectation -> finding: one module for each family of results. Pure: values in, findings out."""

from __future__ import annotations

from memstory.checks import data, text
from memstory.checks.finding import Context, Finding
from memstory.checks.hits import judge_hits
from memstory.checks.matching import judged, known_checks, resolved
from memstory.checks.tool_calls import judge_calls
from memstory.story import Matcher
from memstory.target import Json

__all__ = ["Context", "Finding", "judge", "known_checks"]

# Importing these two fills the table of matchers.
_FAMILIES = (data, text)


def judge(field: str, value: Json, matcher: Matcher, context: Context) -> Finding:
    """Judge one matcher of the expectation on `field` of a result."""
    matcher = resolved(matcher, context.names)
    if field == "hits":
        return judge_hits(value, matcher, context)
    if field == "tool_calls":
        return judge_calls(value, matcher, context)
    return judged(value, matcher, context)
