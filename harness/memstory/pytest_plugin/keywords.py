"""What `-k` and `-m` select, asked of a case before it is an item: a shard of a million rows makes its own alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest


class Selection:
    """Both options of a session, by pytest's own matchers; it looks at the items that are made once more itself."""

    def __init__(self, config: pytest.Config) -> None:
        """Read them. One that is wrong selects all here, and ends the session where pytest reads it."""
        # pytest has no public word for what they mean to it; its own plugin for them is asked, so that both are one.
        self._own = cast("Any", config.pluginmanager.get_plugin("mark"))
        keywords, marks = config.getoption("keyword").lstrip(), config.getoption("markexpr")
        try:
            self._keywords = self._own.Expression.compile(keywords) if keywords else None
            self._marks = self._own.Expression.compile(marks) if marks else None
        except SyntaxError:
            self._keywords = self._marks = None

    @property
    def is_any(self) -> bool:
        """Whether anything is to be selected by them."""
        return self._keywords is not None or self._marks is not None

    def has(self, item: pytest.Item) -> bool:
        """Whether they leave an item in."""
        return self._has_marks(item) and self._has_keywords(item)

    def places(self, item: pytest.Item, names: Iterable[str]) -> Iterator[int]:
        """Yield the places of those names under which `item` would be left in."""
        if self._has_marks(item):
            for place, item.name in enumerate(names):
                if self._has_keywords(item):
                    yield place

    def _has_keywords(self, item: pytest.Item) -> bool:
        return self._keywords is None or bool(self._keywords.evaluate(self._own.KeywordMatcher.from_item(item)))

    def _has_marks(self, item: pytest.Item) -> bool:
        matcher = self._own.MarkMatcher.from_markers
        return self._marks is None or bool(self._marks.evaluate(matcher(item.iter_markers())))
