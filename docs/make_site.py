"""Gather the pages for the site: those of docs/, and the pages outside of it that they link to, in the same places."""  # noqa: INP001

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "build/site-source"
OUTSIDE: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "LICENSE",
    "reports/README.md",
    "changelog.d/README.md",
)
_LINK: Final = re.compile(r"\[([^\[\]]+)\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def gather() -> None:
    """Copy the pages; a link to what is not a page, such as a folder of stories, becomes its text."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = [*(ROOT / "docs").rglob("*"), *(ROOT / "reports/baseline").glob("*.md"), *(ROOT / name for name in OUTSIDE)]
    wanted = {page for page in pages if page.is_file() and page.suffix in {".md", ".png", ".json"}}
    for page in wanted:
        copy = SOURCE / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            copy.write_text(_without_folders(page, wanted), encoding="utf-8")
        else:
            shutil.copyfile(page, copy)


def _without_folders(page: Path, wanted: set[Path]) -> str:
    def kept(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        # A link that leads nowhere stays, so that the strict build finds it.
        return link[0] if target in wanted or not target.exists() else link[1]

    return _LINK.sub(kept, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    gather()
