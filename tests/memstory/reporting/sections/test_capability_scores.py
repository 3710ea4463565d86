"""The groups of stories: what is written of them in the documents is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from memstory.language.capabilities import FEATURES, families, operations
from memstory.reporting.sections.outcomes import GROUPS

PAGE = Path(__file__).parents[4] / "docs/how-to/compare.md"


def words(cell):
    return set(re.findall(r"`([^`]+)`", cell))


def test_the_table_in_the_documents_is_the_definition():
    rows = re.findall(r"^\| ([^|]+) \|([^|]*)\|([^|]*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    written = {name: (words(tags), words(needs)) for name, tags, needs in rows if name in GROUPS}
    defined = {
        name: (set(group.tags), {f"{one}*" if one.endswith(".") else one for one in group.needs})
        for name, group in GROUPS.items()
    }
    assert written == defined


def test_every_need_of_a_group_is_a_capability_that_stories_use():
    known = {*operations(), *FEATURES}
    prefixes = {f"{one.partition('.')[0]}." for one in known} | {f"{one}." for one in families()}
    assert {need for group in GROUPS.values() for need in group.needs} <= known | prefixes
