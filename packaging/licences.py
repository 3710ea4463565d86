"""What memstory and each extra bring, with licences: `python packaging/licences.py FILE`, as `nox -s bill` does.

It reads the metadata of what is installed where it runs. An extra of which something is not installed there is named.
"""  # noqa: INP001  (a script, no package)

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = """\
# Licences

What `pip install .` in a clone brings, and what each extra adds, by the licence that each package names in its
metadata: a list for those who must check, not legal advice. Made by `nox -s bill` on Linux with Python {python};
the versions are those of that day, and what a package bundles within its wheel is not seen. The bill of materials
that is attached to a release has the same in CycloneDX.

| extra | packages | licences |
|---|---|---|
"""
LONGEST = 40
SAME = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
}
"""The same licence under the name that SPDX gives it; another text stays as its package has it."""
OSI = re.compile(r"License :: (?:OSI Approved(?: ::)? ?)?(.*)")


def main(file: Path) -> None:
    """Write the page."""
    installed = {canonicalize_name(one.name): one for one in distributions()}
    extras = sorted(installed["memstory"].metadata.get_all("Provides-Extra") or ())
    plain, missing = closure(installed, "")
    lines = [HEAD.format(python=f"{sys.version_info.major}.{sys.version_info.minor}"), row("(none)", plain, missing)]
    everything = dict(plain)
    for extra in extras:
        found, missing = closure(installed, extra)
        lines.append(row(extra, {name: one for name, one in found.items() if name not in plain}, missing))
        everything |= found
    lines += ["\n## Each package\n\n| package | version | licence |\n|---|---|---|\n", *packages(everything)]
    file.write_text("".join(lines), encoding="utf-8")


def closure(installed: Mapping[str, Distribution], extra: str) -> tuple[dict[str, Distribution], set[str]]:
    """Return all that memstory needs with an extra, and the names of what is not installed."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    missing: set[str] = set()
    waiting = [("memstory", extra)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        if name not in installed:
            missing.add(name)
            continue
        found[name] = installed[name]
        for text in installed[name].requires or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": wanted}):
                waiting += [(canonicalize_name(asked.name), one) for one in ("", *asked.extras)]
    found.pop("memstory", None)
    return found, missing


def row(extra: str, found: Mapping[str, Distribution], missing: set[str]) -> str:
    """Return a line: how many packages have which licence."""
    counts = Counter(licence(one) for one in found.values())
    said = ", ".join(f"{name} {number}" for name, number in counts.most_common())
    gone = f"; not installed here: {', '.join(sorted(missing))}" if missing else ""
    return f"| {extra} | {len(found)} | {said or 'nothing more'}{gone} |\n"


def packages(found: Mapping[str, Distribution]) -> Iterator[str]:
    """Yield a line for each package."""
    for name in sorted(found):
        yield f"| {name} | {found[name].version} | {licence(found[name])} |\n"


def licence(one: Distribution) -> str:
    """Return the licence that a package names: by SPDX, by a short text, or by its classifiers."""
    if expression := one.metadata.get("License-Expression"):
        return expression
    named = (one.metadata.get("License") or "").strip()
    if not named or len(named) > LONGEST or "\n" in named:
        classifiers = one.metadata.get_all("Classifier") or ()
        named = " and ".join(found[1] for text in classifiers if (found := OSI.fullmatch(text)) and found[1])
    return SAME.get(named, named.replace("|", "/")) or "not named"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
