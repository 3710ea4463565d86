"""Whatever is in a file, it is read or refused by a message: never a traceback.

`nox -s long -- fuzz` reads 200,000 of each kind; `MEMSTORY_FUZZ_SEED` sets which.
"""

import asyncio
import json
import tomllib
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from memstory.bundled import bundled_stories
from memstory.contract.errors import Mark
from memstory.controls import CONTROLS
from memstory.datasets.jsonl import read_task
from memstory.language.reading import OUR_FAULT
from memstory.language.stories import InvalidStory, parse_stories
from memstory.reporting.gate import gate
from memstory.reporting.markdown import as_markdown
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.comparison import compare, comparison_document
from memstory.reporting.writing import run_document
from memstory.results.folder.recordings_file import read_recordings, with_steps, write_recordings
from memstory.results.folder.results_file import parse_results, results_text
from memstory.results.folder.spool import Spool
from memstory.results.likeness import run_differences
from memstory.results.merging import ShardSource, merge_shards
from memstory.results.runs import NamedRun
from memstory.targets.discovery import load_table

MARK = Mark("a.story.yaml", 1, 1)
pytestmark = pytest.mark.doses("files", 500, 200_000)


@pytest.fixture(scope="module")
def folder():
    # In memory where the system has it: a disk takes longer to write a file than we to read it.
    memory = Path("/dev/shm")  # noqa: S108  (its own folder is made there)
    with TemporaryDirectory(prefix="memstory-fuzz-", dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


def as_json(tree: object) -> bytes:
    return json.dumps(tree).encode()


def as_jsonl(rows: object) -> bytes:
    return b"\n".join(map(as_json, rows)) if isinstance(rows, list) else as_json(rows)


def test_a_damaged_story_is_positioned_messages(fuzz):
    sounds = [
        [one for one in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader) if one]
        for path in sorted(bundled_stories().rglob("*.yaml"))
    ]

    def read(content):
        text = content.decode("utf-8", "replace")
        found = parse_stories(text, "a.story.yaml", CONTROLS)
        wrong = [error for story in found if isinstance(story, InvalidStory) for error in story.errors]
        assert all(error.mark and error.mark.line >= 1 and error.mark.column >= 1 for error in wrong)
        assert not [error for error in wrong if OUR_FAULT in error.message], "only the net caught it"
        if wrong:
            raise wrong[0]

    def write(tree):
        whole = json.loads(json.dumps(tree, default=str).replace("\\ud800", "?"))  # YAML cannot have it as it is
        several = whole if isinstance(whole, list) else [whole]
        return yaml.dump_all(several, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, encoding="utf-8")

    fuzz([[one] for several in sounds for one in several], write, read)


def test_damaged_results_are_a_message(fuzz, results, run_of):
    whole = run_of(results)

    def read(content):
        run = parse_results(content, Path("results.json"))
        runs = [NamedRun(name="before", run=whole), NamedRun(name="now", run=run)]
        as_markdown(run_document(run))
        gate(*runs)
        gate(*reversed(runs))
        if not run_differences(runs):
            as_markdown(comparison_document(compare(runs and [*runs], columns_of(runs)[0]), columns_of(runs)))
        merge_shards([ShardSource(name=one.name, head=one.run, cases=one.run.cases) for one in runs])

    fuzz([json.loads(results_text(whole))], as_json, read)


def test_damaged_recordings_and_spools_are_a_message(fuzz, folder, results, run_of):
    whole = run_of(results)
    write_recordings(folder / "recordings.jsonl", results)
    lines = [json.loads(line) for line in (folder / "recordings.jsonl").read_text("utf-8").splitlines()]
    spool = Spool(folder)
    for case in results:
        spool.append(case)
    spooled = [json.loads(line) for line in (folder / "spool.jsonl").read_text("utf-8").splitlines() if line]

    def read(content):
        (folder / "recordings.jsonl").write_bytes(content)
        (folder / "spool.jsonl").write_bytes(content)
        spool.read()
        with_steps(whole, read_recordings(folder / "recordings.jsonl"))

    fuzz([lines, spooled], as_jsonl, read)


def test_a_damaged_corpus_is_a_message(fuzz, folder):
    corpora = bundled_stories() / "corpora"
    queries = min(corpora.glob("*.queries.jsonl"))
    rows = [json.loads(line) for line in queries.read_text("utf-8").splitlines()[:5]]
    corpus = folder / "corpus.jsonl"
    documents = [
        {"id": gold, "text": f"text {gold}", "metadata": {"a": 1}, "key": gold}
        for row in rows
        for gold in row["relevant"]
    ]
    damaged_file = folder / "damaged.jsonl"

    def read(content):
        corpus.write_bytes(as_jsonl(list({row["id"]: row for row in documents}.values())))
        damaged_file.write_bytes(content)
        for pair in ((corpus, damaged_file), (damaged_file, corpus)):
            task = read_task(*pair, MARK, {"a": 1} if len(content) % 2 else None)
            assert all(document.text.strip() for one in task.collections for document in one.documents)

    fuzz([rows, documents], as_jsonl, read)


def test_a_damaged_table_is_a_message(fuzz, folder):
    tables = Path(load_table.__code__.co_filename).parent / "tables"
    # A table that names a class has no more to damage than that name.
    sounds = [tomllib.loads(path.read_text("utf-8")) for path in sorted(tables.glob("mcp-*.toml"))]
    path = folder / "memstory.toml"

    def read(content):
        path.write_bytes(content)
        for name in names_of(content):
            load_table(f"{path}#{name}", load=pytest.fail)

    def write(tree):
        return "\n".join(toml_lines(tree)).encode("utf-8", "replace") if isinstance(tree, dict) else b"x = 1"

    fuzz(sounds, write, read)


def names_of(content):
    """The tables of a file: one that is not there would be refused before the others are read."""
    try:
        return [*tomllib.loads(content.decode())["targets"]] or ["mine"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ["mine"]


def toml_lines(tree, path=()):
    """The lines of a TOML file; None, which TOML does not have, is left out."""
    plain = {key: value for key, value in tree.items() if not (isinstance(value, dict) and path_is_short(path))}
    for key, value in plain.items():
        yield f"{json.dumps(key)} = {toml_value(value)}"
    for key, value in tree.items():
        if key not in plain:
            inner = (*path, key)
            yield f"[{'.'.join(map(json.dumps, inner))}]"
            yield from toml_lines(value, inner)


def path_is_short(path):
    return len(path) < 3


def toml_value(value):
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {toml_value(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return '""' if value is None else json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


@pytest.mark.skipif(find_spec("filelock") is None, reason="the reference is not installed")
def test_a_damaged_recording_of_a_model_is_a_message(fuzz, folder):
    from memstory.contract.errors import MemstoryError  # noqa: PLC0415
    from memstory.contract.models import ChatRequest, Message, Reply, ToolRequest  # noqa: PLC0415
    from memstory.contract.values import ToolSchema  # noqa: PLC0415
    from memstory.models.cassette import Exchange, ReplayingChat, write_call  # noqa: PLC0415

    path = folder / "model.json"
    tool = ToolSchema(name="search", description="Search.", parameters={"type": "object"})
    asked = ToolRequest(name="search", arguments={"query": "q"})
    said = [
        Message(role="user", content="Hello\nyou"),
        Message(role="assistant", content="", tool_requests=(asked,)),
        Message(role="tool", content="found", tool="search"),
    ]
    for purpose in ("chat", "extract"):
        request = ChatRequest(said, [tool], purpose=purpose, temperature=0.1, response_schema={"type": "object"})
        write_call(path, "ollama:m", Exchange(request, Reply(content="Hi", tool_requests=(asked,))))
    sound = json.loads(path.read_text("utf-8"))

    def read(content):
        path.write_bytes(content)
        asyncio.run(ReplayingChat(path).chat(ChatRequest([*said, Message(role="user", content="more")], [tool])))

    fuzz([sound], as_json, read, (MemstoryError,))
