"""Where the lines of code go: `python benchmarks/lines.py`, a row for each package.

A line of code is neither blank, nor a comment, a docstring or an import. What a package carries as YAML, TOML, a
template, a script or a style sheet counts too, since logic can move there; generated schemas and data do not.
`tests/budgets.toml` has the ceilings.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOTS = ("harness/memstory", "reference_impl/memstory_reference")
OTHER = {".css": "/*", ".html": "<!--", ".js": "//", ".svg": "<!--", ".toml": "#", ".txt": "#", ".yaml": "#"}
"""How a comment begins in each other kind of file that counts."""


def code_lines(path: Path) -> int:
    """Return the number of lines of code in one file; 0 for a kind of file that does not count."""
    lines = path.read_text("utf-8").splitlines() if path.suffix in {".py", *OTHER} else []
    if path.suffix != ".py":
        return sum(1 for line in lines if line.strip() and not line.strip().startswith(OTHER[path.suffix]))
    other = {number for number, line in enumerate(lines, 1) if not line.strip() or line.strip().startswith("#")}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            other |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            other |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1)) if text else set()
    return len(lines) - len(other)


def packages() -> dict[str, int]:
    """Return the lines of code by package, such as `harness/memstory/results`; a module of the root counts there."""
    counts: Counter[str] = Counter()
    for root in ROOTS:
        for path in sorted((ROOT / root).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                inner = path.relative_to(ROOT / root).parts
                counts["/".join((root, *inner[:1])) if len(inner) > 1 else root] += code_lines(path)
    return dict(sorted(counts.items()))


if __name__ == "__main__":
    counted = packages()
    for name, count in counted.items():
        print(f"{count:7,}  {name}")
    for root in ROOTS:
        print(f"{sum(count for name, count in counted.items() if name.startswith(root)):7,}  {root}, in all")
