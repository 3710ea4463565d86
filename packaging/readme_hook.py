"""The README of the package: README.md, whose links lead into the repository at the tag of this version.

A package index shows the text without the files beside it. hatchling runs this whenever it makes metadata.
"""  # noqa: INP001  (a script of the build, no package)

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)\s]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    """Gives `readme` with whole addresses."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        whole = with_addresses(text, metadata["urls"]["Source"], f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": whole}


def with_addresses(text: str, source: str, tag: str) -> str:
    """Return a text whose links to files lead to these files at a tag; pictures come as they are, pages as shown.

    >>> with_addresses("[a](docs/a.md#b) ![c](c.png) [d](#d)", "https://host/me/it", "v1")
    '[a](https://host/me/it/blob/v1/docs/a.md#b) ![c](https://host/me/it/raw/v1/c.png) [d](#d)'
    """
    return _LINK.sub(lambda link: f"]({source}/{'raw' if link[1].endswith('.png') else 'blob'}/{tag}/{link[1]})", text)
