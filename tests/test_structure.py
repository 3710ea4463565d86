"""The shape of the tree: what import-linter, ruff and mypy cannot see."""

import ast
import configparser
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "harness/memstory", ROOT / "reference_impl/memstory_reference")
MODULES = sorted(path for source in SOURCES for path in source.rglob("*.py"))
BUDGETS: dict[str, int] = tomllib.loads((ROOT / "tests/budgets.toml").read_text("utf-8"))
LINES = SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks/lines.py")))
SLACK = 30
"""How far a budget may be above the code before it has to fall."""
SYSTEMS = {path.parent.name for path in (SOURCES[1] / "systems").glob("*/__init__.py")}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "base", "stuff"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def calls(path: Path) -> set[str]:
    """The last two parts of everything that a module calls or indexes, such as `datetime.now`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        called = node.func if isinstance(node, ast.Call) else node
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name | ast.Attribute):
            owner = called.value.id if isinstance(called.value, ast.Name) else called.value.attr
            found.add(f"{owner}.{called.attr}")
        elif isinstance(called, ast.Name):
            found.add(called.id)
    return found


def test_imports_flow_one_way():
    # one contract keeps the systems from knowing each other.
    # In its own process: it turns every logger off that exists, and puts this folder on the path.
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  (fixed words)
    assert run.returncode == 0, run.stdout + run.stderr


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports, also within functions and for type checkers."""
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {one.partition(".")[0] for one in names}


def test_only_adapters_and_clients_of_models_import_what_the_harness_alone_does_not_need():
    # Of an adapter a test of its own shows that loading it imports nothing of its vendor.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"[^\w.-]", one)[0].lower().replace("_", "-") for one in project["dependencies"]}
    homes = {
        package: {one.lower().replace("_", "-") for one in homes} for package, homes in packages_distributions().items()
    }
    own = {package for package in homes if needed & homes[package]}
    free = {"memstory", *own, *sys.stdlib_module_names}
    apart = {"targets", "models"}
    modules = [path for path in MODULES if SOURCES[0] in path.parents and not apart & {*path.parts[len(ROOT.parts) :]}]
    assert {"yaml", "pytest"} <= free
    assert {name(path): found for path in modules if (found := imported(path) - free)} == {}


def test_what_type_checkers_see_of_json_is_a_recursive_alias():
    nodes = ast.walk(ast.parse((ROOT / "harness/memstory/contract/values.py").read_text("utf-8")))
    (alias,) = (node.value for node in nodes if isinstance(node, ast.AnnAssign) and node.target.id == "Json")
    assert {"Json", "Any"} & set(re.findall(r"\w+", alias.value)) == {"Json"}


def test_contracts_of_imports_name_packages_so_that_a_new_module_is_under_them():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", "utf-8")
    named = {one for part in contracts.values() for one in part.get("source_modules", "").split()}
    homes = {source.name: source for source in SOURCES}
    assert named
    assert [one for one in named if not homes[one.partition(".")[0]].joinpath(*one.split(".")[1:]).is_dir()] == []


def test_the_module_of_hooks_has_hooks_alone():
    tree = ast.parse((SOURCES[0] / "pytest_plugin/hookspecs.py").read_text("utf-8"))
    made = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom | ast.If | ast.Expr)]
    assert [getattr(node, "name", node) for node in made] == ["pytest_memstory_targets"]


def test_no_package_has_more_lines_of_code_than_its_budget():
    over = {package: count for package, count in LINES.packages().items() if count > BUDGETS.get(package, 0)}
    assert over == {}, "delete code, or raise the number in tests/budgets.toml and say why in the commit"


def test_budgets_fall_with_the_code():
    counted = LINES.packages()
    assert {package: most for package, most in BUDGETS.items() if most > counted.get(package, 0) + SLACK} == {}


def test_a_line_of_code_is_no_blank_comment_docstring_or_import(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""Says\nwhat."""\n\nimport os\nfrom os import (\n    path,\n)\n# why\nX = path\n', "utf-8")
    sheet = tmp_path / "page.css"
    sheet.write_text("/* why */\n\nbody {\n}\n", "utf-8")
    data = tmp_path / "corpus.jsonl"
    data.write_text("{}\n", "utf-8")
    assert [LINES.code_lines(path) for path in (module, sheet, data)] == [1, 2, 0]


def test_no_module_has_a_vague_name():
    parts = {name(path): set(path.with_suffix("").relative_to(ROOT).parts) for path in MODULES}
    assert [path for path, words in parts.items() if words & VAGUE] == []


def test_every_module_says_what_it_is_for():
    silent = [name(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert silent == []


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in MODULES}
    assert sorted(name(folder) for folder in folders if not (folder / "__init__.py").is_file()) == []


@pytest.mark.parametrize("folder", ["systems", "text"])
def test_logic_is_given_time_ids_and_chance(folder):
    reached = {"datetime.now", "datetime.utcnow", "date.today", "time.time", "uuid.uuid4", "uuid4", "os.environ"}
    modules = [path for path in MODULES if folder in path.parts and "memstory_reference" in path.parts]
    assert {name(path): found for path in modules if (found := calls(path) & reached)} == {}


def private_names(path: Path) -> set[str]:
    """The names that begin with one underscore and are of somebody else: attributes, imports, texts that name them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.rpartition(".")[2])
    return {one for one in found if re.fullmatch(r"_[a-zA-Z]\w*", one)}


def test_mutants_patch_nothing_private():
    files = sorted((ROOT / "tests").rglob("test_mutants.py"))
    assert {path.parent.name for path in files} >= SYSTEMS
    assert {name(path): found for path in files if (found := private_names(path))} == {}


def committed_text() -> list[Path]:
    """Every text file of the project's own folders, this one left out because it spells what it forbids."""
    folders = (".ci", "benchmarks", "docs", "harness", "reference_impl", "stories", "tests")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    files += [path for path in sorted(ROOT.iterdir()) if path.is_file() and path.name != ".git"]
    suffixes = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".jsonl", ".txt", ".ini", ".cfg", ""}
    return [path for path in files if path.suffix in suffixes and path != Path(__file__)]


def test_no_file_names_a_package_index_or_a_machine():
    forbidden = re.compile(
        r"https?://\S+/simple\b"
        r"|--(?:extra-)?index-url|--find-links"
        r"|(?<![\w./~-])/(?:work|root)/\w"
    )
    found = {name(path): hit[0] for path in committed_text() if (hit := forbidden.search(path.read_text("utf-8")))}
    assert found == {}
