"""What other code may import: listed in `memstory/__init__.py`, and nothing else is promised."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import memstory


@pytest.mark.parametrize("name", memstory.__all__)
def test_every_listed_name_is_there(name):
    assert getattr(memstory, name) is not None


def test_what_type_checkers_see_is_what_is_listed():
    tree = ast.parse(inspect.getsource(memstory))
    seen = next(node for node in tree.body if isinstance(node, ast.If))
    found = {(statement.module, alias.name) for statement in seen.body for alias in statement.names}
    assert sorted(name for _, name in found) == sorted(memstory.__all__)
    for module, name in found:
        __import__(module)
        assert getattr(sys.modules[module], name) is getattr(memstory, name)


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(AttributeError, match=r"has no attribute 'Targets'; its names are .*TargetFactory"):
        _ = memstory.Targets


def test_the_package_imports_nothing_before_it_is_asked():
    code = "import memstory, sys; print(sorted(name for name in sys.modules if name.startswith('memstory.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_no_module_has_the_name_of_something_that_is_listed():
    beside = {path.stem for path in Path(memstory.__file__).parent.iterdir()}
    assert not beside & set(memstory.__all__)
