"""How a target's name finds its factory."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command
from memstory.contract.target import TargetFactory
from memstory.controls import OracleFactory
from memstory.targets.discovery import check_names, known_names, load_spec, load_targets


class Mine(TargetFactory):
    name = "mine"


def test_the_reference_is_known_without_being_imported():
    code = (
        "import sys; from memstory.targets.discovery import known_names; assert 'reference' in known_names();"
        "assert not [name for name in sys.modules if name.startswith('memstory_reference')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  (our own code)


def test_a_control_is_found_behind_its_prefix():
    assert isinstance(load_targets(["control:oracle"])["control:oracle"], OracleFactory)


def test_an_unknown_control_names_the_known_ones():
    with pytest.raises(SetupError, match="Did you mean 'control:oracle'"):
        load_targets(["control:oracel"])


def test_module_and_class_need_no_registration():
    targets = load_targets(["memstory.controls:OracleFactory"])
    assert list(targets) == ["memstory.controls:OracleFactory"]


def test_a_project_offers_classes_instances_and_specs():
    offers = {"a": Mine, "b": Mine(), "c": "memstory.controls:OracleFactory"}
    targets = load_targets(["c", "a", "b"], offers)
    assert list(targets) == ["c", "a", "b"]
    assert isinstance(targets["a"], Mine)
    assert set(offers) <= set(known_names(offers))


def test_a_group_stands_for_its_members_once():
    offers = {"all": ("a", "b"), "a": Mine, "b": Mine}
    assert list(load_targets(["b", "all"], offers)) == ["b", "a"]


def test_a_group_within_itself_is_refused():
    with pytest.raises(SetupError, match="a -> b -> a"):
        load_targets(["a"], {"a": ("b",), "b": ["a"]})


def test_an_unknown_name_says_what_is_near_and_what_is_known():
    with pytest.raises(SetupError, match=r"unknown target 'referense'. Did you mean 'reference'\? Known: .*topics"):
        check_names(["referense"])


def test_the_name_of_a_module_that_lies_here_says_how_its_class_is_named(tmp_path, monkeypatch):
    (tmp_path / "notes.py").write_text("class Notes: ...")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match=r"unknown target 'notes'\. There is a notes\.py here: .* as notes:CLASS"):
        check_names(["notes"])


def test_names_with_a_colon_are_left_to_loading():
    check_names(["somewhere.else:Target"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere_at_all:X", "needs the package 'nowhere_at_all', which is not installed"),
        ("contrl:oracle", "needs the package 'contrl', .* Did you mean 'control:oracle'"),
        ("memstory.controls:Orakel", "has no 'Orakel'"),
        ("memstory.controls.oracle:Orakle", r"has no 'Orakle' .*Did you mean 'Oracle'\? It has: .*, Oracle, "),
        ("far/mine.py:Notes", "names a file, and a module is wanted: write 'far.mine:Notes'"),
        ("memstory.controls:CONTROLS", "dict is no memstory.TargetFactory"),
        ("json:loads", "'json:loads' is a function that does not say what it returns; if it makes a memory, "),
        ("math:hypot", "float is no memstory.TargetFactory"),
        ("builtins:max", "'builtins:max' cannot be loaded: TypeError: max expected at least 1 argument, got 0$"),
    ],
)
def test_a_spec_that_leads_nowhere_is_one_line(spec, message):
    with pytest.raises(SetupError, match=message) as error:
        load_spec(spec)
    assert "\n" not in str(error.value)


def test_a_missing_vendor_names_the_extra_that_brings_it(tmp_path, monkeypatch):
    (tmp_path / "needy.py").write_text("raise ModuleNotFoundError('x', name='httpx')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SetupError, match=re.escape(f"Install it with: {install_command('http')}")):
        load_spec("needy:Factory")


def test_an_extra_of_a_package_from_elsewhere_is_installed_by_its_name():
    assert install_command("mine", "their-memory") == "pip install 'their-memory[mine]'"


def test_a_package_that_lacks_a_part_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "partial.py").write_text("import memstory.no_such_part")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SetupError, match=r"cannot be imported: No module named 'memstory.no_such_part'"):
        load_spec("partial:Factory")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit(0)\n", r"SystemExit: 0, at .*own_module\.py:2$"),
        ("1 / 0\n", r"ZeroDivisionError: division by zero, at .*own_module\.py:1$"),
        ("def f(:\n", r"SyntaxError: invalid syntax \(own_module\.py, line 1\)$"),
        ("raise RuntimeError('two\\nlines')\n", "RuntimeError: two lines, at "),
    ],
)
def test_a_module_that_breaks_while_it_is_imported_is_one_line_with_its_place(tmp_path, monkeypatch, text, message):
    (tmp_path / "own_module.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    with pytest.raises(SetupError, match=f"^the target 'own_module:X' cannot be loaded: {message}") as error:
        load_spec("own_module:X")
    assert "\n" not in str(error.value)
