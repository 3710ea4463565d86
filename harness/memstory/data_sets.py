"""The sets of conversations that memstory knows by name: what they are, where their authors keep them, their pins.

None is bundled: two may not be, and the third is large. `memstory data get NAME` fetches one from its own place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.texts import did_you_mean

STORIES: Final = Path(__file__).parent / "datasets" / "stories"
"""Each set has a file of stories of its own name here; they only measure, and `--bundled` does not mean them."""

ENDING: Final = ".story.yaml"

_CHAT_FILES: Final = (("chat_trunecated.json", "chat.json"), ("probing_questions/probing_questions.json",))
"""Of a chat of BEAM. The authors answer from the shortened one where there is one, and spell it so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One set: `address` is what the names of its `files` stand behind; of several names, the first that is there.

    `megabytes` is about what is fetched. `hashes` are SHA-256 by file where they are known; without one, `is_at_commit`
    says whether the address names a commit, so that it gives the same files to everybody. `file` is the one that a
    reader opens; a set without it is a folder.
    """

    title: str
    about: str
    licence: str
    address: str
    files: Sequence[Sequence[str]]
    megabytes: int
    hashes: Mapping[str, str] = field(default_factory=dict)
    is_at_commit: bool = False
    file: str | None = None


def _longmemeval(file: str, about: str, megabytes: int, digest: str | None = None) -> DataSet:
    return DataSet(
        title="LongMemEval",
        about=about,
        licence="MIT",
        address="https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/",
        files=((file,),),
        megabytes=megabytes,
        hashes={file: digest} if digest else {},
        file=file,
    )


def _beam(size: str, chats: int, megabytes: int) -> DataSet:
    return DataSet(
        title="BEAM",
        about=f"{chats} chats of {size} tokens, {20 * chats} questions on ten abilities (ICLR 2026)",
        licence="none stated (CC BY-SA 4.0 by a collector's card)",
        address="https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/"
        f"b2a3ee8ba12d68f83143dda191097dc3e028ddd3/chats/{size}/",
        files=[[f"{chat}/{name}" for name in either] for chat in range(1, chats + 1) for either in _CHAT_FILES],
        megabytes=megabytes,
        is_at_commit=True,
    )


SETS: Final[Mapping[str, DataSet]] = {
    "locomo": DataSet(
        title="LoCoMo",
        about="10 conversations of months between two people, 1,986 questions (ACL 2024)",
        licence="CC BY-NC 4.0",
        address="https://raw.githubusercontent.com/snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/",
        files=(("locomo10.json",),),
        megabytes=3,
        hashes={"locomo10.json": "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"},
        is_at_commit=True,
        file="locomo10.json",
    ),
    "locomo-audit": DataSet(
        title="the audit of LoCoMo's labels",
        about="156 corrections of LoCoMo's labels, for 'labels: audited'",
        licence="CC BY-NC 4.0",
        address="https://raw.githubusercontent.com/dial481/locomo-audit/9493fb4b4af4256ed17a18e8fd0b3cfdeec29539/",
        files=(("errors.json",),),
        megabytes=1,
        is_at_commit=True,
        file="errors.json",
    ),
    "longmemeval": _longmemeval(
        "longmemeval_s_cleaned.json",
        "S: 500 questions, each with its own history of about 50 sessions (ICLR 2025)",
        277,
        "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
    ),
    "longmemeval-oracle": _longmemeval(
        "longmemeval_oracle.json", "the 500 questions with the sessions that answer them alone", 15
    ),
    "longmemeval-m": _longmemeval(
        "longmemeval_m_cleaned.json", "M: the 500 questions, each with its own history of about 500 sessions", 2740
    ),
    "beam": _beam("100K", 20, 22),
    "beam-500k": _beam("500K", 35, 90),
    "beam-1m": _beam("1M", 35, 130),
    "beam-10m": _beam("10M", 10, 400),
}


def data_set(name: str) -> DataSet:
    """Return the set of that name; SetupError where there is none."""
    if name not in SETS:
        raise SetupError(f"no data set is named '{name}'.{did_you_mean(name, SETS)} Known: {', '.join(SETS)}.")
    return SETS[name]


def set_story(name: str) -> Path | None:
    """Return the file of stories that measures on a set; None where `name` is that of none, or the set has none."""
    path = STORIES / f"{name}{ENDING}"
    return path if name in SETS and path.is_file() else None
