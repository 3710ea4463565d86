"""The pytest plugin: stories are collected from YAML, run on the chosen targets and reported.

pytest imports this at every start, in projects without stories too. So the modules that do the work are imported
inside the hooks, when the first story is met: that is what keeps a start cheap.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from memstory.bundled import bundled_stories, shown_path
from memstory.pytest_plugin import hookspecs
from memstory.pytest_plugin.budget import budget_of
from memstory.pytest_plugin.options import (
    ENDED,
    NO_TARGET,
    NOT_RUN,
    OUTCOME,
    PROJECTS,
    SESSION,
    add_options,
    is_typed,
    is_worker,
    leave_values_out,
    point_to_models,
    read_short_names,
    report_folder,
)

__all__: list[str] = []

_SHOWN = 10
_SUFFIXES = frozenset({".yaml", ".yml"})
_ENDINGS = (".story.yaml", ".story.yml")
_ROOTS: pytest.StashKey[Sequence[Path]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini settings."""
    add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, args: list[str], parser: pytest.Parser
) -> Generator[None]:
    """Understand short names, as soon as plugins and the first conftests have taken those that are theirs."""
    leave_values_out(early_config, args)
    yield
    typed = {word.partition("=")[0] for word in early_config.invocation_params.args}
    early_config.stash[PROJECTS] = [name for name in read_short_names(parser, args) if name in typed]


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let a project offer its own targets."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse a target that does not exist before anything is collected."""
    config.addinivalue_line("markers", "story: a story of memstory; its tags are markers too")
    point_to_models(config)
    budget_of(config, report_folder(config))
    if config.getoption("memstory_shard_by") is not None:
        from memstory.pytest_plugin.selection import read_times  # noqa: PLC0415  (see the module's docstring)

        read_times(config)
    if is_typed(config) or config.getini("memstory_target"):
        from memstory.pytest_plugin.targets import check_chosen  # noqa: PLC0415  (see the module's docstring)

        check_chosen(config)
    if config.getoption("memstory_on") and not is_worker(config):
        from memstory.pytest_plugin.distribution import Distribution  # noqa: PLC0415  (see the module's docstring)

        config.pluginmanager.register(Distribution(config), "memstory-distribution")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file of stories; YAML that is not ours is never opened."""
    if file_path.suffix not in _SUFFIXES or not _is_story_file(file_path, parent.session):
        return None
    from memstory.pytest_plugin.collect import StoryFile  # noqa: PLC0415  (see the module's docstring)

    # Of a file outside the project, pytest would leave the path out of the id, and with it the end that marks stories.
    root = parent.config.rootpath
    outside = not file_path.is_relative_to(root)
    return StoryFile.from_parent(parent, path=file_path, nodeid=shown_path(file_path, root) if outside else None)


def _is_story_file(path: Path, session: pytest.Session) -> bool:
    """Whether a YAML file is ours: by its ending, by its folder, or because it was named on the command line."""
    if path.name.endswith(_ENDINGS) or session.isinitpath(path):
        return True
    if _ROOTS not in session.config.stash:
        session.config.stash[_ROOTS] = [bundled_stories(), *session.config.getini("memstory_stories")]
    return any(path.is_relative_to(root) for root in session.config.stash[_ROOTS])


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """End with one error where stories were met and there is no target to run them on."""
    try:
        return (yield)
    finally:
        if NO_TARGET in session.config.stash and not is_worker(session.config):
            raise pytest.UsageError(session.config.stash[NO_TARGET])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the stories of this shard and put them in order, when everything else has selected."""
    if SESSION in config.stash or config.getoption("memstory_shard") is not None:
        from memstory.pytest_plugin.selection import select_stories  # noqa: PLC0415  (see the module's docstring)

        select_stories(config, items)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Count what was only measured apart from what passed and what was skipped."""
    # From a worker of xdist the pairs come as lists.
    if report.when == "call" and dict(report.user_properties).get(OUTCOME) == "measured":
        return "measured", "m", "MEASURED"
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Make the report's folder ready, where this process runs the stories itself; keep the report from a second Ctrl-C.

    Not before: a run that ends with its collection must not cost the report of the run before it.
    """
    stopped = session.testsfailed and not session.config.option.continue_on_collection_errors
    has_stories = any(item.get_closest_marker("story") for item in session.items)
    if not stopped and (has_stories or session.config.getoption("memstory_shard") is not None):
        from memstory.pytest_plugin.session import begin  # noqa: PLC0415  (see the module's docstring)

        begin(session.config)
    try:
        return (yield)
    except KeyboardInterrupt:
        if SESSION in session.config.stash:
            from memstory.pytest_plugin.session import end_quietly  # noqa: PLC0415  (see the module's docstring)

            end_quietly(session.config)
        raise


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: object, ids: list[str]) -> None:
    """Make the report's folder ready, where workers run the stories."""
    # The file alone: a parameter of some test may name a story.
    if any(node_id.partition("::")[0].endswith((".yaml", ".yml")) for node_id in ids):
        from memstory.pytest_plugin.session import begin  # noqa: PLC0415  (see the module's docstring)

        begin(node.config)  # type: ignore[attr-defined]  # a WorkerController; xdist may not be installed


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take from a worker what only it knows: the run's shard, and which targets did not stop."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]  # a WorkerController; xdist may not be installed
    if config.getoption("memstory_shard") is not None or SESSION in config.stash:
        from memstory.pytest_plugin.selection import hear_worker  # noqa: PLC0415  (see the module's docstring)

        hear_worker(config, getattr(node, "workeroutput", {}))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep secrets out of what a story's target printed, and record a story that somebody else ended."""
    report = yield
    if SESSION in item.config.stash and (report.sections or not report.passed):
        from memstory.pytest_plugin.items import note_foreign_end, show_safely  # noqa: PLC0415  (see the module)

        show_safely(item, report)
        note_foreign_end(item, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Forget what a story came to once nothing of it is to be said any more: it is written down."""
    said = yield
    if SESSION in item.config.stash:
        from memstory.pytest_plugin.items import forget_result  # noqa: PLC0415  (see the module's docstring)

        forget_result(item)
    return said


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Stop what was started and write the reports, also when stories failed or the run was interrupted, even twice."""
    try:
        yield
    finally:
        ENDED[:] = [session]
        if SESSION in session.config.stash:
            from memstory.pytest_plugin.session import finish  # noqa: PLC0415  (see the module's docstring)

            finish(session)


def pytest_unconfigure() -> None:
    """Tell `memstory run`, where it waits, that pytest has come to its end."""
    if "MEMSTORY_SUPERVISOR" in os.environ:
        from memstory.running import supervision  # noqa: PLC0415  (see the module's docstring)

        supervision.tell_supervisor(supervision.ENDED)


def _colour(line: str) -> dict[str, bool]:
    """Return how a line of the summary is shown: red where something is wrong, green where all passed."""
    wrong = re.search(r"\b[1-9]\d* (?:failed|error|invalid)\b|^passed in the last run", line)
    good = re.search(r"\b[1-9]\d* passed\b", line)
    return {"red": True} if wrong else {"green": True} if good else {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what the stories came to."""
    not_run = list(config.stash.get(NOT_RUN, {}).items())
    for why, (first, *others) in not_run[:_SHOWN]:
        more = f" and {len(others)} more, such as {others[0].rpartition(' ')[2]}" if others else ""
        terminalreporter.write_line(f"{first}{more}: {why}")
    if rest := not_run[_SHOWN:]:
        terminalreporter.write_line(f"and {sum(len(found) for _, found in rest)} more stories are not run")
    state = config.stash.get(SESSION, None)
    if state is not None and state.summary:
        terminalreporter.section("memstory")
        for line in state.summary.split("\n"):
            terminalreporter.write_line(line, **_colour(line))
