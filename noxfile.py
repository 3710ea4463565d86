"""The commands of this project; `nox -l` lists them, pyproject.toml says what each one installs."""

from collections.abc import Iterable
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "types", "imports", "tests", "stories"]

PROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, group: str, *extras: str) -> None:
    """Install this checkout and one dependency group at the pinned versions, and the weights if the group embeds."""
    requirements = nox.project.dependency_groups(PROJECT, group)
    checkout = f".[{','.join(extras)}]" if extras else "."
    session.install("-c", "constraints.txt", "-e", checkout, *requirements, silent=False)
    if set(nox.project.dependency_groups(PROJECT, "run")) <= set(requirements):
        session.install("--no-deps", PROJECT["tool"]["memstory"]["weights"], silent=False)


@nox.session
def stories(session: nox.Session) -> None:
    """Run the bundled stories and write reports/latest; what follows `--` goes to pytest: `nox -s stories -- -k S5`."""
    install(session, "run")
    # A whole run takes two workers; one that somebody narrows is told in full, with the progress of long cases.
    session.run("python", "-m", "pytest", "stories", *(session.posargs or ["-n", "2"]))


@nox.session
def controls(session: nox.Session) -> None:
    """Run the stories on empty, random and faulty memories; reports/controls says which stories show nothing."""
    install(session, "run")
    folder = "reports/controls"
    command = ("python", "-m", "pytest", "stories", "--target", "control:all", "--report", folder, "--tb", "no", "-q")
    # The stories are to fail here, on the faulty ones; whether they fail as they should is judged next.
    session.run(*command, *session.posargs, success_codes=[0, 1], silent=True)
    session.run("python", "-m", "memstory.reporting.controls", folder)


def extras_of(words: Iterable[str]) -> list[str]:
    """Return the extras of the targets among `words`: an adapter to a heavy library has one of its own name."""
    targets = {word.removeprefix("--target=") for word in words}
    return sorted(targets & set(PROJECT["project"]["optional-dependencies"]))


@nox.session
def compare(session: nox.Session) -> None:
    """Put targets side by side in reports/compare/compare.md: `nox -s compare -- --target reference --target mem0`."""
    install(session, "run", *extras_of(session.posargs))
    folder = "reports/compare"
    command = ("python", "-m", "pytest", "stories", "--report", folder, "--tb", "no", "-q")
    # Stories may fail here: what each target fails is what is asked for.
    session.run(*command, *session.posargs, success_codes=[0, 1], silent=True)
    session.run("memstory", "compare", folder, "--output", f"{folder}/compare.md")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests of memstory itself; `nox -s tests -- -m slow` runs the long ones."""
    install(session, "test")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and changelog fragments; `nox -s lint -- PATHS` looks at these files only."""
    install(session, "lint")
    paths = session.posargs or ["."]
    session.run("ruff", "check", *paths)
    session.run("ruff", "format", "--check", *paths)
    session.run("towncrier", "build", "--draft", "--version", "next", silent=True)


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
    install(session, "run")
    scripts = {path.stem: path for path in sorted(Path("benchmarks").glob("*.py"))}
    for name in session.posargs or scripts:
        if name not in scripts:
            session.error(f"no benchmark '{name}'. Known: {', '.join(scripts)}.")
        session.log(f"benchmarks/{name}.py")
        session.run("python", str(scripts[name]))
