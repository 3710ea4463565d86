import asyncio
import io
import json
import re

import pytest

from memstory_reference.cli import main
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.embedders import MINILM, make_embedder
from memstory_reference.composition.observations import open_observations
from memstory_reference.systems.observations.settings import ObservationsSettings

pytestmark = pytest.mark.usefixtures("minilm_weights")


async def fill(folder):
    ports = MemoryPorts(embedder=make_embedder(MINILM, ollama_host=""), new_id=str)
    service = await open_observations(ObservationsSettings(path=str(folder)), ports)
    for number, task in enumerate(("Control the token budget of agents", "Bake sourdough bread")):
        await service.compress_and_store(
            task=task, output=f"{task}. It worked.", owner="default", run_id=f"run-{number}"
        )
    await service.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("observations")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def command(store, capsys):
    def run(*words):
        general = words[0] in ("list", "rate", "forget")
        face = ["memory", *words, "--system", "observations"] if general else ["observations", *words]
        code = main([*face, "--store", str(store)])
        return code, *capsys.readouterr()

    return run


def test_list_begins_with_the_newest(command):
    code, out, _ = command("list", "--json")
    assert (code, [one["id"] for one in json.loads(out)]) == (0, ["run-1", "run-0"])


def test_search_shows_every_number_of_the_rank(command):
    code, out, _ = command("search", "token budget control")
    header, _, only = out.splitlines()
    assert (code, header.split()) == (0, ["run", "title", "sim", "qual", "q_adjust", "rank", "found", "by"])
    assert "run-0" in only


def test_a_topic_that_nobody_worked_on_is_said_to_be_new(command):
    code, out, _ = command("search", "orbital mechanics")
    assert (code, out) == (0, "Nothing is known about this; a run on it would start from scratch.\n")


def test_a_rating_moves_the_rank(command):
    before = json.loads(command("search", "token budget", "--json")[1])[0]
    assert command("rate", "run-0", "1")[:2] == (0, "Rated.\n")
    after = json.loads(command("search", "token budget", "--json")[1])[0]
    assert after["rank"] == pytest.approx(before["rank"] * 1.15)


def test_an_unknown_run_or_rating_is_one_line_and_not_zero(command):
    unknown, out_of_range = command("rate", "no-run", "1"), command("rate", "run-0", "9")
    assert (unknown[0], unknown[2].count("\n"), out_of_range[0], out_of_range[2].count("\n")) == (1, 1, 1, 1)
    assert "numbers from -2 to 2" in out_of_range[2]


def test_a_folder_without_a_store_is_said_to_be_empty_and_stays_so(tmp_path, capsys):
    code = main(["observations", "search", "x", "--store", str(tmp_path)])
    assert (code, list(tmp_path.iterdir())) == (1, [])
    assert "no observations are stored here" in capsys.readouterr().err


def test_a_finished_run_is_stored_from_a_file_or_a_pipe_and_forgotten(command, tmp_path, monkeypatch):
    written = tmp_path / "out.md"
    written.write_text("Rivers flood in spring. Dams help.", encoding="utf-8")
    assert command("store", "Study floods", "--output", str(written), "--run-id", "floods", "--score", "7.5")[:2] == (
        0,
        "floods: stored, summarised by rules\n",
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("Dams hold water."))
    stored = json.loads(command("store", "Study dams", "--output", "-", "--run-id", "dams", "--json")[1])
    assert (stored["outcome"], stored["narrative"]) == ("stored", "Dams hold water.")
    assert json.loads(command("search", "floods in spring", "--json")[1])[0]["final_score"] == 7.5
    assert command("forget", "floods", "dams", "nobody", "--yes")[:2] == (1, "")
    assert command("forget", "floods", "dams", "--yes")[:2] == (0, "Forgotten: 2.\n")


def test_search_shows_what_a_planner_is_told(command):
    runs = [f"more-{number}" for number in range(5)]
    for run in runs:
        command("store", f"Token budgets, part {run}", "--output", __file__, "--run-id", run)
    rows = json.loads(command("search", "token budget", "--json")[1])
    told = command("search", "token budget", "--context")[1]
    assert command("forget", *runs, "--yes")[0] == 0  # the other tests have the same store
    assert len(rows) == 3
    assert told.startswith("Prior work on related topics:\n")
    assert [one["title"] for one in rows] == re.findall(r"^\[(.*) — score", told, re.MULTILINE)


def test_a_run_on_a_folder_reads_nothing_twice(tmp_path, capsys):
    corpus = tmp_path / "texts" / "deep"
    corpus.mkdir(parents=True)
    (corpus / "caps.md").write_text("A hard token budget cap stops runaway agents.", encoding="utf-8")
    options = ["--corpus", str(corpus.parent), "--store", str(tmp_path / "new"), "--json"]
    runs = []
    for task in ("How to control the token budget of agents", "Token budget control for agents", "Bees of Mars"):
        assert main(["observations", "run", task, *options]) == 0
        runs.append(json.loads(capsys.readouterr().out))
    assert [(one["fetched"], one["spared"]) for one in runs] == [
        (["deep/caps.md"], []),
        ([], ["deep/caps.md"]),
        ([], []),
    ]
    assert runs[2]["stored"] is None


def test_a_folder_or_a_file_that_is_not_there_is_one_line(command, tmp_path):
    (tmp_path / "image").write_bytes(b"\xff\xfe\x00")
    image, none = str(tmp_path / "image"), str(tmp_path / "none")
    stored = [("store", task, "--output", file) for task, file in (("t", image), ("t", none), (" ", __file__))]
    for words in (("run", "t", "--corpus", "/nowhere"), *stored):
        code, _, err = command(*words)
        assert "Errno" not in err
        assert (code, err.count("\n")) == (1, 1)


def test_a_store_in_postgres_is_one_memory_of_all_commands(postgres_database, tmp_path, capsys):
    output = tmp_path / "output.txt"
    output.write_text("Sourdough wants a day of rest. It worked.", "utf-8")
    at_store = ["--store", postgres_database]
    assert main(["observations", "store", "Bake sourdough bread", "--output", str(output), *at_store]) == 0
    assert main(["observations", "search", "sourdough bread", "--json", *at_store]) == 0
    assert "Bake sourdough bread" in capsys.readouterr().out
    assert main(["memory", "status", "--system", "observations", *at_store]) == 0
    assert capsys.readouterr().out == "default: observations 1, pending 0\n"


def test_a_server_that_is_away_is_one_line_without_the_password(capsys):
    assert main(["observations", "search", "bread", "--store", "postgresql://ann:sesame@127.0.0.1:1/work"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "sesame" in err) == ("", 1, False)
    assert "Postgres does not answer" in err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("127.0.0.1:1", "Ollama does not answer at http://127.0.0.1:1"),
        ("http://127.0.0.1:1", "Ollama does not answer at http://127.0.0.1:1"),
        ("127.0.0.1:one", "--ollama-host is '127.0.0.1:one'; allowed: HOST, HOST:PORT or a URL such as http://"),
        ("ftp://127.0.0.1", "ollama_host is 'ftp://127.0.0.1'; allowed: an address such as http://"),
    ],
)
def test_the_address_of_ollama_may_be_typed_as_ollama_takes_it(tmp_path, capsys, typed, said):
    (tmp_path / "output.txt").write_text("It worked.", "utf-8")
    words = [
        "observations",
        "store",
        "Bake bread",
        "--output",
        str(tmp_path / "output.txt"),
        "--embedder",
        "ollama:none",
    ]
    assert main([*words, "--ollama-host", typed, "--store", str(tmp_path / "store")]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_what_a_run_wrote_cannot_steer_the_terminal(tmp_path, capsys):
    (tmp_path / "output.txt").write_text("It \x9b31m worked.\u202e So it did.", "utf-8")
    at_store = ["--store", str(tmp_path / "store"), "--embedder", "words"]
    written = ["--output", str(tmp_path / "output.txt"), "--run-id", "r\u202e1"]
    assert main(["observations", "store", "Bake red bread", *written, *at_store, "--json"]) == 0
    for more in ([], ["--json"], ["--context"]):
        assert main(["observations", "search", "Bake red bread", *at_store, *more]) == 0
    out = capsys.readouterr().out
    assert "worked" in out
    assert {"\x9b", "\u202e"}.isdisjoint(out)
