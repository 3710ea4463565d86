"""`memstory new`: files to start from, which work at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Final

from memstory.commands.authoring.chat_story import story_of_chat, turns_of
from memstory.commands.authoring.words import MODE_LINE, SCHEMA_NAME
from memstory.commands.command import OK, Command
from memstory.commands.output import say
from memstory.contract.errors import SetupError

_TEMPLATES: Final[Mapping[str, Mapping[str, str]]] = {
    "story": {"{name}.story.yaml": "story.yaml"},
    "corpus": {
        "{name}.jsonl": "corpus.jsonl",
        "{name}.queries.jsonl": "corpus.queries.jsonl",
        "{name}.story.yaml": "corpus.story.yaml",
    },
    "target": {
        "{name}.py": "target.py.txt",
        "test_{name}.py": "test_target.py.txt",
        "{name}.story.yaml": "target.story.yaml",
    },
}
"""For each kind, the files it consists of and the templates they are made from."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}\Z")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=list(_TEMPLATES), help="what to write: story, corpus or target")
    parser.add_argument("name", metavar="NAME", help="its name: a letter, then letters, digits, '-' and '_'")
    parser.add_argument(
        "--from-chat", type=Path, metavar="FILE", dest="chat",
        help="make the story of a chat: 'user:' and 'assistant:' lines, or JSON messages with 'role' and 'content'",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="where to (default: here)")


def _run(chosen: argparse.Namespace) -> int:
    if chosen.chat is not None and chosen.kind != "story":
        raise SetupError(
            f"--from-chat makes a story, not a {chosen.kind}: memstory new story {chosen.name} --from-chat …"
        )
    chat = _read_chat(chosen.chat, chosen.name) if chosen.chat is not None else None
    written = write(chosen.kind, chosen.name, chosen.folder, story=chat)
    for path in written:
        say(f"wrote {path.as_posix()}")
    story = written[-1]
    say(f"check it:  memstory validate {story.as_posix()}")
    if chosen.kind == "target":
        here = "" if chosen.folder == Path() else f"(cd {chosen.folder.as_posix()}) "
        spec = _placeholders(chosen.name, story.name)["__SPEC__"]
        say(f"run it:    {here}memstory run {story.name} --target {spec}")
        say(f"test it:   {here}python -m pytest {written[1].name}")
        say(f"probe it:  {here}memstory probe {spec}")
        say(f"then put calls of your backend into {written[0].as_posix()}, and there what the probe prints")
    else:
        # The oracle does not talk; the agent of the harness talks for a keyword store.
        say(f"run it:    memstory run {story.as_posix()} --target {'fts5' if chat else 'control:oracle'}")
        say("then make it say what your memory must do; 'memstory steps' and 'memstory matchers' list the words")
    return OK


def write(kind: str, name: str, folder: Path, *, story: str | None = None) -> list[Path]:
    """Write the files of `kind` into `folder`, the story last, and return their paths; none is overwritten.

    `story` is the text of the story, instead of the template's.
    """
    if not _NAME.match(name):
        raise SetupError(f"'{name}' is not a valid name: start with a letter, then letters, digits, '-' and '_'")
    if kind == "target":
        name = name.replace("-", "_")
        _check_module(name)
    contents = {
        folder / pattern.format(name=name): _fill_template(template, name, pattern.format(name=name), folder)
        for pattern, template in _TEMPLATES[kind].items()
    }
    if story is not None:
        contents = {path: _with_mode_line(story, folder) for path in contents}
    taken = [path.as_posix() for path in contents if path.exists()]
    if taken:
        raise SetupError(
            f"{' and '.join(taken)} {'is' if len(taken) == 1 else 'are'} there already; choose another name"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in contents.items():
        path.write_text(text, "utf-8")
    return list(contents)


def _check_module(name: str) -> None:
    """Raise SetupError for a name that Python cannot import, or finds the adapter by in the place of another module."""
    if iskeyword(name):
        raise SetupError(
            f"'{name}' is a word of Python, and no module can be imported by it; choose another name, such as my_{name}"
        )
    if find_spec(name) is not None:
        raise SetupError(
            f"'{name}' is a module that is installed, and {name}.py would hide it; choose another name, such as "
            f"my_{name}"
        )


def _fill_template(template: str, name: str, file: str, folder: Path) -> str:
    text = files("memstory").joinpath("templates", template).read_text("utf-8")
    for word, value in _placeholders(name, file).items():
        text = text.replace(word, value)
    return _with_mode_line(text, folder) if file.endswith(".yaml") else text


def _with_mode_line(text: str, folder: Path) -> str:
    """Return a story with the line for editors, which is a promise: it is given only where the schema is."""
    return f"{MODE_LINE}\n{text}" if (folder / SCHEMA_NAME).exists() else text


def _read_chat(chat: Path, name: str) -> str:
    try:
        text = chat.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SetupError(f"{chat} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{chat} is not UTF-8; save it as UTF-8") from error
    return story_of_chat(turns_of(text, str(chat)), name)


def _placeholders(name: str, file: str) -> Mapping[str, str]:
    module = name.replace("-", "_")
    class_name = "".join(part[:1].upper() + part[1:] for part in module.split("_"))
    return {
        "__ID__": name,
        "__NAME__": name,
        "__FILE__": file,
        "__CLASS__": class_name,
        "__SPEC__": f"{module}:{class_name}Factory",
    }


COMMAND = Command(
    about=(
        "Write files to start from. They are valid and run as they are; nothing is ever overwritten.\n"
        "  story    NAME.story.yaml: steps with expectations\n"
        "  corpus   NAME.jsonl, NAME.queries.jsonl and a story that scores how well the documents are found\n"
        "  target   NAME.py: an adapter to your own backend, test_NAME.py: what every adapter has to keep, and\n"
        "           NAME.story.yaml: the first stories to run on it"
    ),
    examples="""
examples:
  memstory new story forgets-on-request
  memstory new story support --from-chat chat.txt    a story of a chat that went well, or wrong
  memstory new corpus recipes --folder stories
  memstory new target my_memory
""",
    exit_codes=("exit codes: 0 written, 2 not written: the file exists, or the name is not valid"),
    options=_options,
    run=_run,
)
