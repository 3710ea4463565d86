"""A story file -> stories, for runs and for `memstory validate`.

A document becomes one tree for each row of `parametrize`, with the values of `vars` and `defaults` in place of
`${name}`; a tree that keeps the grammar becomes a `Story`. All faults of a document are reported at once, each as
`file:line:col: what was found; what is allowed`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree
from memstory.language.capabilities import FEATURES, is_known, needs_of_story, operations
from memstory.language.grammar import grammar
from memstory.language.matchers.check import read_fields, read_group
from memstory.language.reading import Reading, StoryDocument, TreePath, internal_error
from memstory.language.references import REFERENCE, unmark
from memstory.language.registry import unknown_name_message
from memstory.language.row_files import (
    KEY,
    FileRow,
    OpenLines,
    RowFile,
    lines_beside,
    named_by_first,
    no_lines,
    read_row_file,
)
from memstory.language.story import Expectation, Retrieval, Step, Story, Trials
from memstory.language.text import documents
from memstory.language.violations import violations
from memstory.language.words.step_parsing import read_steps
from memstory.language.words.times import LONGEST_WAIT, read_duration

_UNFILLED = frozenset({"vars", "defaults", "parametrize", "story", "tags", "covers"})
_FILLED_IN_RUNS = frozenset({"steps", "expect"})
"""Where names are looked up again when the story runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryRow:
    """The tree of one row of a document, or of a document without rows.

    Attributes:
        name: The name of the row; None without `parametrize`.
        tree: The tree, with the values of names.
        origins: The names that have a value -> the key that gives it, such as `vars`.
        written: The row as its file has it; empty where the document has it.
    """

    name: str | None
    tree: Tree
    origins: Mapping[str, str]
    written: str = ""


def expand_rows(document: StoryDocument, errors: list[StoryError]) -> Iterator[StoryRow]:
    """Yield the rows of a document, and add its faults of names and values to `errors`."""
    tree = document.tree
    listed = tree.get(KEY)
    errors += _check_names(document, "defaults", _mapping(tree.get("defaults")))
    if not isinstance(listed, list) or not listed:
        yield _row(document, None, {}, errors)
        return
    names = _row_names(document, listed, errors)
    for index, values in enumerate(listed):
        own = _own_values(_mapping(values))
        errors += _check_names(document, (KEY, index), own)
        yield _row(document, names[index], own, errors)


def _row(document: StoryDocument, name: str | None, own: Mapping[str, Tree], errors: list[StoryError]) -> StoryRow:
    constants, defaults = _mapping(document.tree.get("vars")), _mapping(document.tree.get("defaults"))
    origins = {**dict.fromkeys(defaults, "defaults"), **dict.fromkeys(constants, "vars"), **dict.fromkeys(own, KEY)}
    return StoryRow(name=name, tree=_fill_tree(document, {**defaults, **constants, **own}, errors), origins=origins)


def _own_values(row: Mapping[str, Tree]) -> Mapping[str, Tree]:
    return {name: value for name, value in row.items() if name != "row"}


def _mapping(value: Tree) -> Mapping[str, Tree]:
    return value if isinstance(value, dict) else {}


def _check_names(document: StoryDocument, where: str | TreePath, values: Mapping[str, Tree]) -> list[StoryError]:
    path = (where,) if isinstance(where, str) else where
    constants = _mapping(document.tree.get("vars"))
    return [
        StoryError(f"'{name}' is under `vars` already; put it under `defaults` if rows may change it",
                   document.at_key((*path, name)))
        for name in values if name in constants
    ]  # fmt: skip


def _row_names(document: StoryDocument, listed: list[Tree], errors: list[StoryError]) -> list[str]:
    """Return the names of rows: `row`, else the first value if no two are equal, else the number."""
    first = [named_by_first(_mapping(row)) for row in listed]
    is_distinct = all(first) and len(set(first)) == len(first)
    names: list[str] = []
    for index, row in enumerate(listed):
        name = str(_mapping(row).get("row", first[index] if is_distinct else index + 1))
        if name in names:
            errors.append(StoryError(f"the row '{name}' is listed twice; give each its own `row:`",
                                     document.at(("parametrize", index))))  # fmt: skip
        names.append(name)
    return names


def _fill_tree(document: StoryDocument, names: Mapping[str, Tree], errors: list[StoryError]) -> Tree:
    is_marked = "$${" in document.text
    if not names and not is_marked:
        return document.tree
    filled = {
        key: value if key in _UNFILLED else _fill(value, names, document, (key,), errors)
        for key, value in document.tree.items()
    }
    if not is_marked:
        return filled
    return {key: value if key in _UNFILLED | _FILLED_IN_RUNS else _unmark_all(value) for key, value in filled.items()}


def _unmark_all(value: Tree) -> Tree:
    if isinstance(value, dict):
        return {key: _unmark_all(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unmark_all(inner) for inner in value]
    return unmark(value) if isinstance(value, str) else value


def _fill(
    value: Tree, names: Mapping[str, Tree], document: StoryDocument, path: TreePath, errors: list[StoryError]
) -> Tree:
    if isinstance(value, dict):
        return {key: _fill(inner, names, document, (*path, key), errors) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fill(inner, names, document, (*path, index), errors) for index, inner in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = REFERENCE.fullmatch(value)
    if whole and whole[1] in names:
        return names[whole[1]]
    return REFERENCE.sub(lambda found: _text_of(found, names, document.at(path), errors), value)


def _text_of(found: re.Match[str], names: Mapping[str, Tree], mark: Mark, errors: list[StoryError]) -> str:
    if found[1] not in names:
        return found[0]
    value = names[found[1]]
    if isinstance(value, (dict, list)):
        word = "list" if isinstance(value, list) else "mapping"
        errors.append(StoryError(f"{found[0]} is a {word}, which cannot be part of a text; give it alone", mark))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


_OWNERS = {
    **dict.fromkeys(("path", "split", "unit", "labels"), "dataset"), "where": "queries", "distractors": "corpus",
    "user": "preloaded", "ids": "preloaded", "seed": "sample",
}  # fmt: skip
"""Keys of a retrieval that need another one."""

_OUTCOMES = {"pass": "passed", "fail": "failed"}


def story_of(
    document: StoryDocument, row: StoryRow, controls: Collection[str] | None = None
) -> tuple[Story | None, Sequence[StoryError]]:
    """Return the story of one row and no errors, or None and all of its errors.

    `controls` are the names that `control:` can have; None for any.
    """
    errors: list[StoryError] = []
    if not isinstance(row.tree, dict):
        return None, (StoryError("a story is a mapping: it starts with 'story: ID' and 'title: …'", document.mark),)
    found = list(violations(row.tree, document))
    reading = Reading(document=document, errors=errors, broken_paths=[path for path, _ in found], origins=row.origins)
    _read_vectors(reading, row.tree)
    steps = read_steps(reading, row.tree.get("steps"))
    parts = _parts(reading, row.tree)
    _check_controls(reading, row.tree, controls)
    _check_waits(reading, steps)
    # An `expect` at the top of steps is a mistake as a whole: what is in it is meant for a step.
    told = [error for path, error in found if path[:1] != ("expect",) or "retrieval" in row.tree]
    every = told + errors
    if every:
        return None, tuple(every)
    story = _story(reading, row, steps, parts)
    return replace(story, needs=frozenset(needs_of_story(story))), ()


def _story(reading: Reading, row: StoryRow, steps: Sequence[Step], parts: Mapping[str, Any]) -> Story:
    tree, document = row.tree, reading.document
    text = document.text.strip() + (f"\n# row {row.name}" if row.name else "") + row.written
    return Story(
        id=tree["story"],
        title=tree["title"],
        mark=document.mark,
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
        tags=tuple(tree.get("tags", ())),
        covers=tuple(tree.get("covers", ())),
        targets=tuple(tree.get("targets", ())),
        needs=frozenset(tree.get("requires", ())),
        options=tree.get("options", {}),
        vectors=reading.vectors,
        model=tuple(tree.get("model", ())),
        steps=steps,
        perturb=tree.get("perturb", {}),
        measure=tree.get("measure", False),
        control={name: _OUTCOMES[word] for name, word in tree.get("control", {}).items() if name != "because"},
        control_because=tree.get("control", {}).get("because"),
        settles=tree.get("settle", "auto") == "auto",
        redact=tree.get("redact", "none"),
        harm=tree.get("harm"),
        slug=tree.get("slug"),
        precondition=tree.get("precondition"),
        row=row.name,
        notes=tree.get("notes"),
        **parts,
    )


def _read_vectors(reading: Reading, tree: Mapping[str, Tree]) -> None:
    if reading.is_sound(("vectors",)):
        for text, vector in tree.get("vectors", {}).items():
            reading.add_vector(text, vector, ("vectors", text))


def _parts(reading: Reading, tree: Mapping[str, Tree]) -> Mapping[str, Any]:
    """Return the fields of a `Story` for its retrieval, trials and expectations, without what is broken."""
    retrieval = _retrieval(reading, tree)
    _check_purpose(reading, tree)
    if reading.is_sound(("requires",)):
        for index, capability in enumerate(tree.get("requires", ())):
            if not is_known(capability):
                reading.fault(
                    ("requires", index), unknown_name_message(capability, "capability", [*operations(), *FEATURES])
                )
    return {
        "retrieval": retrieval,
        "trials": _trials(reading, tree),
        "expect": _story_expectations(reading, tree, retrieval),
    }


def _check_waits(reading: Reading, steps: Sequence[Step]) -> None:
    waited = sum(_waiting_time(step) for step in steps)
    if waited > LONGEST_WAIT:
        message = f"the steps 'wait' of a story last {LONGEST_WAIT / 1e6:g} s at most, here {waited / 1e6:g} s"
        reading.fault(("steps",), f"{message}; 'advance' moves the clock of a target that has one", at_key=True)


def _waiting_time(step: Step) -> int:
    own: int = step.args.get("microseconds", 0) if step.op == "wait" else 0
    times: int = step.args["times"] if step.op == "repeat" else 1
    return own + times * sum(_waiting_time(inner) for inner in step.steps)


def _check_controls(reading: Reading, tree: Mapping[str, Tree], controls: Collection[str] | None) -> None:
    if controls is None or not reading.is_sound(("control",)):
        return
    usual = [name for name in grammar()["properties"]["control"]["properties"] if name != "because"]
    for name in tree.get("control", {}):
        if name not in (*controls, "because"):
            reading.fault(("control", name), unknown_name_message(name, "control", usual, controls), at_key=True)


def _check_purpose(reading: Reading, tree: Mapping[str, Tree]) -> None:
    if ("steps" in tree) == ("retrieval" in tree):
        found = "has both" if "steps" in tree else "has neither"
        reading.fault((), f"a story has either 'steps' or a 'retrieval'; this one {found}")
    if "measure" in tree and "expect" in tree:
        reading.fault(("measure",), "'measure' replaces 'expect': this story has both", at_key=True)
    if "retrieval" not in tree:
        where = "beside the step that it speaks of" if "expect" in tree else "in a story with a 'retrieval'"
        for key in ("expect", "perturb"):
            if key in tree:
                reading.fault((key,), f"'{key}' at the top belongs to a retrieval story; write it {where}", at_key=True)


def _retrieval(reading: Reading, tree: Mapping[str, Tree]) -> Retrieval | None:
    path: TreePath = ("retrieval",)
    task = tree.get("retrieval")
    if not isinstance(task, dict) or not reading.is_sound(path):
        return None
    given = {name for name in ("corpus", "queries", "dataset") if name in task}
    files, named = ({"queries"}, "a preloaded retrieval names 'queries'") if task.get("preloaded") else (
        {"corpus", "queries"}, "a retrieval names 'corpus' and 'queries'"
    )  # fmt: skip
    if given not in (files, {"dataset"}):
        reading.fault(
            path, f"{named}, or a 'dataset'; found: {', '.join(sorted(given)) or 'none of them'}", at_key=True
        )
    if task.get("preloaded"):
        _check_preloaded(reading, tree, task)
    for key, owner in _OWNERS.items():
        if key in task and owner not in task:
            reading.fault(
                (*path, key), f"'{key}' belongs to a '{owner}', which this retrieval does not have", at_key=True
            )
    within = read_duration(reading, task["within"], (*path, "within")) / 1e6 if "within" in task else None
    cuts = tuple(map(int, task.get("cuts", ())))
    counts = {name: int(task[name]) for name in ("k", "sample", "seed") if name in task}
    return Retrieval(mark=reading.mark(path), **{**task, **counts, "within": within, "cuts": cuts})


def _check_preloaded(reading: Reading, tree: Mapping[str, Tree], task: Mapping[str, Tree]) -> None:
    path: TreePath = ("retrieval", "preloaded")
    if "user" not in task:
        reading.fault(path, "a preloaded memory is asked for somebody's memories: name whose as 'user'", at_key=True)
    if "perturb" in tree:
        reading.fault(("perturb",), "a preloaded memory is asked as it is: leave out 'perturb'", at_key=True)
    if task.get("dataset", "beir") != "beir":
        reading.fault(
            (*path[:1], "dataset"), "a preloaded memory is asked by 'queries', or by 'dataset: beir', which leave the "
            "corpus out", at_key=True,
        )  # fmt: skip


def _trials(reading: Reading, tree: Mapping[str, Tree]) -> Trials:
    if not (reading.is_sound(("trials",)) and reading.is_sound(("pass",))):
        return Trials()
    count = int(tree.get("trials", 1))
    at_least = int(tree.get("pass", {}).get("at_least", count))
    if at_least > count:
        message = f"{at_least} trials must pass, but 'trials' is {count}; raise it or lower 'at_least'"
        reading.fault(("pass", "at_least"), message)
    return Trials(count=count, at_least=at_least)


def _story_expectations(
    reading: Reading, tree: Mapping[str, Tree], retrieval: Retrieval | None
) -> Sequence[Expectation]:
    if not isinstance(tree.get("expect"), dict) or not reading.is_sound(("expect",)):
        return ()
    return tuple(_expectations(reading, tree["expect"], retrieval))


def _expectations(reading: Reading, expect: Mapping[str, Tree], retrieval: Retrieval | None) -> Iterator[Expectation]:
    for name, value in expect.items():
        path: TreePath = ("expect", name)
        for metric in value if name == "metrics" and retrieval else ():
            cut = int(metric.partition("@")[2] or 0)
            if retrieval and cut > retrieval.depth:
                reading.fault((*path, metric), f"'{metric}' looks at {cut} results, but 'k' is {retrieval.k}; "
                              f"write {{retrieval: {{k: {cut}}}}} or more", at_key=True)  # fmt: skip
        matchers = (read_fields(reading, value, path),) if name == "metrics" else read_group(reading, value, path)
        yield Expectation(field=name, matchers=matchers, mark=reading.mark(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidStory:
    """A document that is not a valid story, with all of its errors; `id` is `document-N` if it has no usable one."""

    id: str
    mark: Mark
    errors: Sequence[StoryError]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryTable:
    """A document whose rows are in a file: its stories are made one by one, and only those that are asked for.

    Attributes:
        rows: The file, of which every line is sound.
        first: The story of the first row.
    """

    document: StoryDocument
    rows: RowFile
    first: Story
    controls: Collection[str] | None

    @property
    def id(self) -> str:
        """The id that all of its stories have."""
        return self.first.id

    @property
    def mark(self) -> Mark:
        """The place that all of them have."""
        return self.first.mark

    @property
    def digest(self) -> str:
        """A hash of the document and of all of its rows."""
        return hashlib.sha256(f"{self.document.text.strip()}\n{self.rows.digest}".encode()).hexdigest()[:16]

    @property
    def is_uniform(self) -> bool:
        """Whether no row can change for which targets its story is, nor whether it measures."""
        return not any("${" in json.dumps(self.document.tree.get(key)) for key in ("targets", "control", "measure"))

    def stories(self, wanted: Container[int] | None = None) -> Iterator[tuple[int, Story | InvalidStory]]:
        """Yield the place of each row and its story, or of those at the wanted places.

        A row that does not make a valid story is an `InvalidStory` by itself; its id is `ID[row]`.
        """
        for row in self.rows.rows(wanted):
            yield row.place, _story_of_file_row(self.document, row, self.rows, self.controls)


def _story_of_file_row(
    document: StoryDocument, row: FileRow, file: RowFile, controls: Collection[str] | None
) -> Story | InvalidStory:
    errors: list[StoryError] = []
    place = f"{Path(file.name).name}:{row.line}"
    try:
        own = _own_values(row.values)
        errors += [StoryError(f"{place}: {error.message}", file.mark) for error in _check_names(document, KEY, own)]
        made = replace(_row(document, row.name, own, errors), written=json.dumps(row.values, sort_keys=True))
        story, faults = story_of(document, made, controls)
        errors += faults
    except Exception as error:  # noqa: BLE001  (the other rows can be read)
        story, errors = None, [internal_error(error, document.mark)]
    if story is not None and not errors:
        return story
    said = [StoryError(f"{error.message} (with the row '{row.name}', {place})", error.mark) for error in errors]
    return InvalidStory(id=f"{_id(document)}[{row.name}]", mark=document.mark, errors=_sort(said))


def load_stories(
    path: Path, display: str | None = None, controls: Collection[str] | None = None
) -> Sequence[Story | InvalidStory]:
    """Return the stories of a file in order, one for each row; a document with faults is an `InvalidStory`.

    Args:
        path: A YAML file; one that cannot be read is an `InvalidStory` too.
        display: The name of the file in messages, `path` if it is None.
        controls: The names that `control:` can have; None for any.
    """
    return tuple(_one_by_one(read_story_file(path, display, controls)))


def read_story_file(
    path: Path, display: str | None = None, controls: Collection[str] | None = None, *, anywhere: bool = False
) -> Iterator[Story | InvalidStory | StoryTable]:
    """Yield what `load_stories` returns, except that a document whose rows are in a file is a `StoryTable`.

    `anywhere` lets it name files of rows outside the stories' root.
    """
    display = display or path.as_posix()
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        mark = Mark(display, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        yield _invalid(StoryError("this is not UTF-8; save the file as UTF-8", mark), mark)
    except OSError as error:
        mark = Mark(display, 1, 1)
        yield _invalid(StoryError(f"the file cannot be read: {error.strerror}", mark), mark)
    else:
        yield from _read_text(text, display, controls, lines_beside(path.parent, anywhere=anywhere))


def parse_stories(
    text: str, display: str, controls: Collection[str] | None = None, lines: OpenLines = no_lines
) -> Sequence[Story | InvalidStory]:
    """Return the stories in the text of a file, as `load_stories` does; a second story with the same id is invalid.

    `lines` gives the lines of a file of rows that a story names: a text by itself is beside none.
    """
    return tuple(_one_by_one(_read_text(text, display, controls, lines)))


def _one_by_one(found: Iterable[Story | InvalidStory | StoryTable]) -> Iterator[Story | InvalidStory]:
    for one in found:
        if isinstance(one, StoryTable):
            yield from (story for _, story in one.stories())
        else:
            yield one


def _read_text(
    text: str, display: str, controls: Collection[str] | None, lines: OpenLines
) -> Iterator[Story | InvalidStory | StoryTable]:
    first_places: dict[str, Mark] = {}
    is_empty = True
    for document in documents(text, display):
        for one in _read_document(document, controls, lines):
            is_empty = False
            twice = None if isinstance(one, InvalidStory) else second_use(one, first_places)
            yield InvalidStory(id=one.id, mark=one.mark, errors=(twice,)) if twice else one
    if is_empty:
        mark = Mark(display, 1, 1)
        yield _invalid(StoryError("no story in this file; a story starts with 'story: ID' and 'title: …'", mark), mark)


def second_use(story: Story | StoryTable, first_places: dict[str, Mark]) -> StoryError | None:
    """Return the error that another story has this one's id; `first_places` gets the place of each id."""
    first = first_places.setdefault(story.id, story.mark)
    if first == story.mark:
        return None
    message = f"duplicate story id '{story.id}'; it was first used at {first}. Ids name results: choose another"
    return StoryError(message, story.mark)


def _invalid(error: StoryError, mark: Mark) -> InvalidStory:
    return InvalidStory(id="document-1", mark=mark, errors=(error,))


def _read_document(
    document: StoryDocument, controls: Collection[str] | None, lines: OpenLines
) -> Sequence[Story | InvalidStory | StoryTable]:
    try:
        return tuple(_stories(document, controls, lines))
    except Exception as error:  # noqa: BLE001  (the other documents and files can be read)
        return (InvalidStory(id=_id(document), mark=document.mark, errors=(internal_error(error, document.mark),)),)


def _stories(
    document: StoryDocument, controls: Collection[str] | None, lines: OpenLines
) -> Iterator[Story | InvalidStory | StoryTable]:
    errors = list(document.errors)
    stories: list[Story | StoryTable] = []
    if document.tree is not None and not isinstance(document.tree, dict):
        hint = "; between stories stands a line '---', and no list" if isinstance(document.tree, list) else ""
        errors.append(
            StoryError(f"a story is a mapping that starts with 'story: ID' and 'title: …'{hint}", document.mark)
        )
    elif document.tree is not None and isinstance(name := _mapping(document.tree.get(KEY)).get("file"), str):
        table = _table(document, name, controls, lines, errors)
        stories += [table] if table else []
    elif document.tree is not None:
        for row in expand_rows(document, errors):
            story, faults = story_of(document, row, controls)
            errors += faults
            stories += [story] if story else []
    if errors:
        yield InvalidStory(id=_id(document), mark=document.mark, errors=_sort(errors))
    else:
        yield from stories


def _table(
    document: StoryDocument,
    name: str,
    controls: Collection[str] | None,
    lines: OpenLines,
    errors: list[StoryError],
) -> StoryTable | None:
    """Return the document with its rows; None if they, or the story of the first, have faults, which go to `errors`."""
    errors += _check_names(document, "defaults", _mapping(document.tree.get("defaults")))
    rows = read_row_file(document, name, lines, errors)
    if rows is None:
        return None
    # What is wrong in the document is so with every row, and told once.
    first = _story_of_file_row(document, next(rows.rows((0,))), rows, controls)
    if isinstance(first, InvalidStory):
        errors += first.errors
        return None
    return StoryTable(document=document, rows=rows, first=first, controls=controls)


def _id(document: StoryDocument) -> str:
    tree = document.tree
    own = tree.get("story") if isinstance(tree, dict) else None
    usable = isinstance(own, str) and own.replace("_", "a").replace("-", "a").isalnum() and own.isascii()
    return own if usable else f"document-{document.index}"  # type: ignore[return-value]


def _sort(errors: Sequence[StoryError]) -> Sequence[StoryError]:
    """Return the errors by place, without repetitions: rows share mistakes."""
    distinct = {str(error): error for error in errors}
    return tuple(sorted(distinct.values(), key=lambda error: (error.mark or Mark("", 0, 0), error.message)))
