"""YAML text -> documents: plain trees, and the place of each value and key.

YAML 1.2 core scalars only: `19:59`, `010`, `no` and dates are texts. What could surprise or explode is refused:
aliases, tags, duplicate keys, keys that are not text, deep nesting. Every fault is a `StoryError` with its place, and a
fault in one document leaves the other documents of the file readable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NoReturn

import yaml

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree
from memstory.language.reading import Place, StoryDocument, TreePath, internal_error
from memstory.language.references import REFERENCE

MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 32
_MAX_DIGITS = 100

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufeff\uff00-\ufffd\U00010000-\U0010ffff]")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_A_NUMBER = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_PLAIN_WORDS = {
    "did not find expected <document start>": "this does not belong to what precedes it",
    "mapping values are not allowed in this context": "a ':' is not allowed here; quote a text that has ': ' in it",
    "could not find expected ':'": "a ':' is missing after this key",
    "found character that cannot start any token": "a value cannot start with this character; quote it",
    "did not find expected key": "this is not a key of the mapping around it; check the indentation and the quotes",
    "did not find expected '-' indicator": "this is not a valid list item; check the indentation",
    "did not find expected ',' or '}'": "a ',' or '}' is missing here",
    "did not find expected ',' or ']'": "a ',' or ']' is missing here",
    "did not find expected node content": "a value is missing here, or cannot start with this character",
    "found unexpected end of stream": "the text ends inside quotes",
}


def documents(text: str, file: str) -> Iterator[StoryDocument]:
    """Yield the documents of a file that are not empty; one that cannot be read has errors and no tree.

    `file` is the name of the file in messages.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS:
        fault = f"the file has {len(text):,} characters; a story file has at most {MAX_CHARACTERS:,}"
        yield _unreadable(file, 1, "", StoryError(fault, Mark(file, 1, 1)))
        return
    index = 1
    for first_line, piece in pieces(text):
        document = _Builder(piece, file, first_line, index).document()
        if document is not None:
            yield document
            index += 1


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of its first line, text) for each part of `text` between lines that start with `---`."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(text) if found.start() > 0), len(text)]
    line = 1
    for start, end in pairwise(starts):
        piece = text[start:end]
        yield line, piece
        line += len(_LINE_BREAK.findall(piece))


def _unreadable(file: str, index: int, text: str, error: StoryError) -> StoryDocument:
    return StoryDocument(file=file, index=index, text=text, mark=error.mark or Mark(file, 1, 1), errors=(error,))


class _Builder:
    """Builds the tree of one document from the events of the YAML parser."""

    def __init__(self, text: str, file: str, first_line: int, index: int) -> None:
        self._text, self._file, self._index = text, file, index
        self._above = first_line - 1
        self._values: dict[TreePath, Place] = {}
        self._keys: dict[TreePath, Place] = {}
        self._errors: list[StoryError] = []

    def document(self) -> StoryDocument | None:
        try:
            return self._build()
        except StoryError as error:
            return _unreadable(self._file, self._index, self._text, error)
        except yaml.YAMLError as error:
            return _unreadable(self._file, self._index, self._text, self._plain_error(error))
        except Exception as error:  # noqa: BLE001  (the other documents can be read)
            return _unreadable(
                self._file, self._index, self._text, internal_error(error, Mark(self._file, self._above + 1, 1))
            )

    def _build(self) -> StoryDocument | None:
        strange = _UNPRINTABLE.search(self._text)
        if strange:
            name = f"U+{ord(strange.group()):04X}"
            raise StoryError(f"the character {name} cannot be in YAML as it is; write it as an escape in "
                             "double quotes", self._mark_of_offset(strange.start()))  # fmt: skip
        if self._text.startswith("%"):
            raise StoryError("a line that starts with '%' is a YAML directive, which stories do not use; remove it",
                             self._mark_of_offset(0))  # fmt: skip
        self._events: Iterator[Any] = iter(yaml.CSafeLoader(self._text).get_event, None)
        next(self._events)
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            return None
        event = next(self._events)
        if isinstance(event, yaml.ScalarEvent) and not event.value and event.implicit[0]:
            self._end()
            return None
        mark = self._mark(event)
        tree = self._node(event, ())
        self._end()
        return StoryDocument(file=self._file, index=self._index, text=self._text, mark=mark, tree=tree,
                        values=self._values, keys=self._keys, errors=tuple(self._errors))  # fmt: skip

    def _end(self) -> None:
        next(self._events)
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise StoryError("a second document starts here; put a line '---' before it", self._mark(event))

    def _node(self, event: Any, path: TreePath) -> Tree:
        if event.anchor is not None or event.tag is not None or len(path) > MAX_DEPTH:
            self._refuse(event)
        self._values[path] = (event.start_mark.line + self._above + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event) if event.implicit[0] else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._mapping(path)

    def _refuse(self, event: Any) -> NoReturn:
        """Say which of the things that stories do not use an event is."""
        if event.anchor is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            raise StoryError(
                f"'{sign}{event.anchor}': anchors and aliases are not used in stories; put what repeats under `vars:` "
                "and write ${name}, or use `parametrize:`",
                self._mark(event),
            )
        if event.tag is not None:
            raise StoryError(f"the tag '{event.tag}' is not used in stories; remove it", self._mark(event))
        raise StoryError(f"nested more than {MAX_DEPTH} levels deep", self._mark(event))

    def _sequence(self, path: TreePath) -> list[Tree]:
        items: list[Tree] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: TreePath) -> dict[str, Tree]:
        mapping: dict[str, Tree] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            inner = (*path, key)
            if key in mapping:
                line, column = self._keys[inner]
                self._errors.append(
                    StoryError(f"the key '{key}' is already at line {line}, column {column}", self._mark(event))
                )
                self._node(next(self._events), (*path, f"{key} (again)"))
                continue
            self._keys[inner] = (event.start_mark.line + self._above + 1, event.start_mark.column + 1)
            mapping[key] = self._node(next(self._events), inner)
        return mapping

    def _key(self, event: Any) -> str:
        if event.anchor is not None or event.tag is not None:
            self._refuse(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise StoryError("a key must be a text, not a list or a mapping; quote it if it is meant as text",
                             self._mark(event))  # fmt: skip
        key = self._scalar(event) if event.implicit[0] else event.value
        if key == "<<" and event.implicit[0]:
            raise StoryError("merge keys (<<) are not used in stories; write the keys out", self._mark(event))
        if isinstance(key, str):
            return key
        self._errors.append(StoryError(f"the key {event.value or 'null'} is not a text; write it in quotes",
                                       self._mark(event)))  # fmt: skip
        return str(event.value)

    def _scalar(self, event: Any) -> Tree:
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        return self._number(text, event) if text[0] in "+-.0123456789" else text

    def _number(self, text: str, event: Any) -> Tree:
        if _INTEGER.match(text) and len(text) <= _MAX_DIGITS:
            return int(text)
        if _FLOAT.match(text) and not _INTEGER.match(text) and math.isfinite(number := float(text)):
            return number
        if not (_FLOAT.match(text) or _NOT_A_NUMBER.match(text)):
            return text
        fault = f"of at most {_MAX_DIGITS} digits" if _INTEGER.match(text) else "that is finite"
        self._errors.append(
            StoryError(f"{text:.40} is not a number {fault}; quote it to mean a text", self._mark(event))
        )
        return 0

    def _mark(self, event: Any) -> Mark:
        return Mark(self._file, event.start_mark.line + self._above + 1, event.start_mark.column + 1)

    def _mark_of_offset(self, offset: int) -> Mark:
        lines = _LINE_BREAK.split(self._text[:offset])
        return Mark(self._file, len(lines) + self._above, len(lines[-1]) + 1)

    def _plain_error(self, error: yaml.YAMLError) -> StoryError:
        place = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        if problem.startswith("found undefined tag handle"):
            problem = "tags are not used in stories"
        mark = Mark(self._file, place.line + self._above + 1, place.column + 1) if place else None
        lines = _LINE_BREAK.split(self._text)
        if place and (tab := _indenting_tab(lines, place.line)):
            return StoryError("tab used for indentation; use spaces", Mark(self._file, tab + self._above, 1))
        problem_in_words = _PLAIN_WORDS.get(problem, problem)
        # At the end of a file the place is one line behind the last.
        if place and place.line < len(lines) and (name := _unquoted_name(lines[place.line], place.column)):
            problem_in_words = f'within {{…}} and […] a text with {name} must be in quotes: "{name}"'
        return StoryError(f"not YAML: {problem_in_words}", mark or Mark(self._file, self._above + 1, 1))  # fmt: skip


def _unquoted_name(line: str, column: int) -> str | None:
    """Return the `${name}` whose brace is at `column`: within a flow mapping it begins a mapping of its own.

    >>> _unquoted_name("- delete: {id: ${tea}}", 16)
    '${tea}'
    """
    found = REFERENCE.match(line, column - 1) if column else None
    return found[0] if found else None


def _indenting_tab(lines: list[str], place: int) -> int | None:
    """Return the number, from 1, of the line at `place` or before it if a tab is in its indentation."""
    for number in (place, place - 1):
        line = lines[number] if 0 <= number < len(lines) else ""
        if "\t" in line[: len(line) - len(line.lstrip())] and line.strip():
            return number + 1
    return None
