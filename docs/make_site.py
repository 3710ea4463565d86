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
    "reports/README.md",
    "reports/submissions/README.md",
    "CHANGELOG.md",
    "SECURITY.md",
)
_LINK: Final = re.compile(r"\[([^\[\]]+)\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def gather() -> None:
    """Copy the pages; a link to what is not a page, such as a folder of stories, becomes its text."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    published = (ROOT / "reports/baseline").glob("*.[mh]*")
    pages = [*(ROOT / "docs").rglob("*"), *published, *(ROOT / name for name in OUTSIDE)]
    wanted = {
        page for page in pages if page.is_file() and page.suffix in {".md", ".html", ".png", ".svg", ".json", ".css"}
    }
    for page in wanted:
        copy = SOURCE / page.relative_to(ROOT).with_name(_site_name(page))
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

    text = _LINK.sub(kept, page.read_text(encoding="utf-8"))
    for one in wanted:
        if one.suffix == ".html" and one.parent == page.parent:
            text = text.replace(f"]({one.name}", f"]({_site_name(one)}")
    return text


def _site_name(page: Path) -> str:
    """Return the name of a page on the site, where `report.md` becomes a `report.html` too."""
    return f"{page.stem}-page.html" if page.suffix == ".html" else page.name


if __name__ == "__main__":
    gather()
