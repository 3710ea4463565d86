"""The shape of the tree: what import-linter, ruff and mypy cannot see."""

import ast
import configparser
import re
import runpy
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "harness/memstory", ROOT / "reference_impl/memstory_reference")
MODULES = sorted(path for source in SOURCES for path in source.rglob("*.py"))
BUDGETS: dict[str, int] = tomllib.loads((ROOT / "tests/budgets.toml").read_text("utf-8"))
IMPORTS = (ast.Import, ast.ImportFrom)
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
    # A cluster is spoken with by two modules of `running`, which import it where they use it.
    apart = {"targets", "models", "dask_pool.py", "dask_task.py"}
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


@pytest.mark.parametrize("source", SOURCES)
def test_public_classes_of_one_root_have_names_of_their_own(source):
    homes = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name(path))
    assert len(homes) > 100
    assert {one: found for one, found in homes.items() if len(found) > 1} == {}


def only_forwards(code: str) -> bool:
    """Whether a module has nothing but imports, `__all__`, and functions that hand their arguments to an import."""
    tree = ast.parse(code)
    brought = {
        alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, IMPORTS) for alias in node.names
    }
    return all(isinstance(node, IMPORTS) or _forwards(node, brought) for node in tree.body if not _is_doc(node))


def _is_doc(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _forwards(node: ast.stmt, brought: set[str]) -> bool:
    if isinstance(node, ast.If):  # if TYPE_CHECKING:
        return all(isinstance(one, IMPORTS) for one in node.body)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        names_import = isinstance(node.value, ast.Name) and node.value.id in brought
        return names_import or (isinstance(target, ast.Name) and target.id == "__all__")
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    statements = [one for one in node.body if not _is_doc(one)]
    value = getattr(statements[0], "value", None) if len(statements) == 1 else None
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in brought:
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(one.value if isinstance(one, ast.Starred) else one, ast.Name) for one in given)


def test_no_module_only_forwards():
    modules = [path for path in MODULES if path.name != "__init__.py"]
    assert [name(path) for path in modules if only_forwards(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('"""Doc."""\nfrom a import b\n__all__ = ["b"]\n', True),
        ("from a import b\nc = b\n", True),
        ("from a import b\ndef c(x, *, y):\n    return b(x, y=y)\n", True),
        ("from a import b\nasync def c(*x):\n    return await b(*x)\n", True),
        ("from a import b\ndef c(x):\n    return b(x + 1)\n", False),
        ("def c(x):\n    return d(x)\n", False),
        ("from a import b\nLIMIT = 3\n", False),
    ],
)
def test_a_module_forwards_if_it_only_hands_on_what_it_imports(code, expected):
    assert only_forwards(code) is expected


def package_lists() -> dict[str, list[str] | None]:
    """What each package gives by its `__all__`, by the package's full name; None where it does not say."""
    lists = dict[str, list[str] | None]()
    for path in (one for one in MODULES if one.name == "__init__.py"):
        assigned = {
            getattr(target, "id", ""): node.value
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        given = assigned.get("__all__")
        lists[dotted(path)] = [one.value for one in given.elts] if isinstance(given, ast.List) else None
    return lists


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def reached(path: Path) -> set[tuple[str, str]]:
    """Each package outside of which a module is, below its root, with the name that the module imports from it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            targets = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for parts in (target.split(".") for target in targets):
            packages = ((".".join(parts[:at]), parts[at]) for at in range(2, len(parts)))
            found |= {one for one in packages if not f"{dotted(path)}.".startswith(f"{one[0]}.")}
    return found


LISTS = package_lists()


def test_every_package_lists_what_it_gives():
    assert [one for one, given in LISTS.items() if given is None] == []


def test_modules_import_from_a_package_only_what_it_lists():
    strays = {
        (name(path), f"{package}.{wanted}")
        for path in MODULES
        for package, wanted in reached(path)
        if package in LISTS and wanted not in LISTS[package]
    }
    assert strays == set()


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
