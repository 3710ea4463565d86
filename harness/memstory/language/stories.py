"""A story file -> stories: the front half of every run, of `memstory validate` and of editors' checks.

Everything that is wrong with a document is said at once, each fault as `file:line:col: what was found; what is
allowed`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memstory.contract.errors import Mark, StoryError
from memstory.language.reading import Document, our_fault
from memstory.language.rows import rows
from memstory.language.story import Story
from memstory.language.story_parsing import story_of
from memstory.language.text import documents


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidStory:
    """A document that cannot be run; `id` is `document-N` if it has no usable id."""

    id: str
    mark: Mark
    errors: Sequence[StoryError]


def load_stories(
    path: Path, display: str | None = None, controls: Collection[str] | None = None
) -> Sequence[Story | InvalidStory]:
    """Return the stories in the file at `path`, in order; each row is a separate story. Messages call it `display`.

    `controls` are the names that `control:` may have; where nobody says, any.
    """
    display = display or path.as_posix()
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        mark = Mark(display, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        return (_invalid(StoryError("this is not UTF-8; save the file as UTF-8", mark), mark),)
    except OSError as error:
        mark = Mark(display, 1, 1)
        return (_invalid(StoryError(f"the file cannot be read: {error.strerror}", mark), mark),)
    return parse_stories(text, display, controls)


def parse_stories(text: str, display: str, controls: Collection[str] | None = None) -> Sequence[Story | InvalidStory]:
    """Return the stories in a file's text; the second story with the same id is invalid."""
    loaded = [story for document in documents(text, display) for story in _read(document, controls)]
    if not loaded:
        mark = Mark(display, 1, 1)
        return (
            _invalid(StoryError("no story in this file; a story starts with 'story: ID' and 'title: …'", mark), mark),
        )
    twice = {id(story): error for story, error in duplicate_ids(loaded)}
    return tuple(
        InvalidStory(id=story.id, mark=story.mark, errors=(twice[id(story)],)) if id(story) in twice else story
        for story in loaded
    )


def duplicate_ids(stories: Sequence[Story | InvalidStory]) -> Iterator[tuple[Story, StoryError]]:
    """Yield each story whose id (with its row) was used before, with the error that says where."""
    seen: dict[tuple[str, str | None], Mark] = {}
    for story in stories:
        if not isinstance(story, Story):
            continue
        first = seen.setdefault((story.id, story.row), story.mark)
        if first != story.mark:
            yield (
                story,
                StoryError(f"the id '{story.id}' is used at {first} already; ids are unique in a run", story.mark),
            )


def _invalid(error: StoryError, mark: Mark) -> InvalidStory:
    return InvalidStory(id="document-1", mark=mark, errors=(error,))


def _read(document: Document, controls: Collection[str] | None) -> Sequence[Story | InvalidStory]:
    try:
        return tuple(_stories(document, controls))
    except Exception as error:  # noqa: BLE001  (the other documents and files can be read)
        return (InvalidStory(id=_id(document), mark=document.mark, errors=(our_fault(error, document.mark),)),)


def _stories(document: Document, controls: Collection[str] | None) -> Iterator[Story | InvalidStory]:
    errors = list(document.errors)
    stories: list[Story] = []
    if document.tree is not None and not isinstance(document.tree, dict):
        errors.append(StoryError("a story is a mapping that starts with 'story: ID' and 'title: …'", document.mark))
    elif document.tree is not None:
        for row in rows(document, errors):
            story, faults = story_of(document, row, controls)
            errors += faults
            stories += [story] if story else []
    if errors:
        yield InvalidStory(id=_id(document), mark=document.mark, errors=_in_order(errors))
    else:
        yield from stories


def _id(document: Document) -> str:
    tree = document.tree
    own = tree.get("story") if isinstance(tree, dict) else None
    usable = isinstance(own, str) and own.replace("_", "a").replace("-", "a").isalnum() and own.isascii()
    return own if usable else f"document-{document.index}"  # type: ignore[return-value]


def _in_order(errors: Sequence[StoryError]) -> Sequence[StoryError]:
    """Sort by place; rows that share a mistake report it once."""
    distinct = {str(error): error for error in errors}
    return tuple(sorted(distinct.values(), key=lambda error: (error.mark or Mark("", 0, 0), error.message)))
