"""Computes which turns answer each question of lifelines, from the ledger; nothing of it is typed by hand.

`python gold.py` writes `relevant`, `stale` and `cluster` of questions.jsonl again. A question has a rule, which picks
facts; gold are the turns that tell them. A value holds from `valid_from` to the day before `valid_to`; a denied one
never holds; a cancelled plan holds until it is called off, unless a true value stands beside it. Stale are the turns
that tell another value of the same chain: up to the day of asking for `latest`, all of them for `as_of`.
"""  # noqa: INP001  (a script beside its data, no package)

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

HERE = Path(__file__).parent
FILES = ("ledger.jsonl", "turns.jsonl", "questions.jsonl")

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """The ids of turns, in order of time; `cluster` is the session of the first, or the question if there is none."""

    relevant: Sequence[str]
    stale: Sequence[str]
    cluster: str


class Ledger:
    """The facts, and the turns that tell them."""

    def __init__(self, facts: Iterable[Row], turns: Iterable[Row]) -> None:
        self.facts = {fact["fact"]: fact for fact in facts}
        self.turns = {turn["id"]: turn["metadata"] for turn in turns}

    def gold(self, question: Row) -> Gold:
        """Return the gold of one question; a rule that picks nothing, or too much, is a ValueError."""
        rule, asked_at = question["metadata"]["rule"], question["asked_at"]
        picked, others = self._picked(rule, asked_at)
        if rule["pick"] == "told_by":
            relevant = [turn for turn in self._told(picked) if self.turns[turn]["speaker"] == rule["speaker"]]
        else:
            relevant = self._told(picked)
        if not relevant and rule["pick"] != "none":
            raise ValueError(f"{question['id']}: {rule} picks no turn")
        stale = [turn for turn in self._told(others) if turn not in relevant]
        cluster = self.turns[relevant[0]]["session"] if relevant else question["id"].rpartition(".")[0]
        return Gold(relevant=relevant, stale=stale, cluster=cluster)

    def chain(self, holder: str, attribute: str) -> list[Row]:
        """Return the values of one attribute in time."""
        found = [one for one in self.facts.values() if (one["holder"], one["attribute"]) == (holder, attribute)]
        return sorted(found, key=lambda fact: (fact["valid_from"], fact["fact"]))

    def holding(self, values: Iterable[Row], day: str) -> list[Row]:
        """Return the values that hold on a day: in a sound chain exactly one."""
        covering = [one for one in values if one["status"] != "denied" and _covers(one, day)]
        return [one for one in covering if one["status"] == "true"] or covering

    def _picked(self, rule: Row, asked_at: str) -> tuple[list[Row], list[Row]]:
        """Return the facts that a rule picks, and the other values of their chain where it is about one day."""
        match rule["pick"]:
            case "facts" | "order":
                return [self.facts[one] for one in rule["facts"]], []
            case "told_by":
                return [self.facts[rule["fact"]]], []
            case "latest" | "as_of":
                values = self.chain(rule["holder"], rule["attribute"])
                (holds,) = self.holding(values, rule.get("at", asked_at))
                last = asked_at if rule["pick"] == "latest" else "9999"
                others = [one for one in values if one is not holds and one["status"] != "denied"]
                return [holds], [one for one in others if one["valid_from"] <= last]
            case "all":
                values = self.chain(rule["holder"], rule["attribute"])
                true = [one for one in values if one["status"] == "true" and one["valid_from"] <= asked_at]
                return [one for one in true if _within(one, rule["from"], rule["to"])], []
            case _:
                return [], []

    def _told(self, facts: Iterable[Row]) -> list[str]:
        turns = {turn for fact in facts for turn in fact["told_in"]}
        return sorted(turns, key=lambda turn: (self.turns[turn]["said_at"], turn))


def _covers(fact: Row, day: str) -> bool:
    return bool(fact["valid_from"] <= day and (fact["valid_to"] is None or day < fact["valid_to"]))


def _within(fact: Row, first: str | None, last: str | None) -> bool:
    """Return whether a fact lies in a window that includes both its ends; a state may have begun before it."""
    if last is not None and fact["valid_from"] > last:
        return False
    lasts = fact["kind"] == "state" and (fact["valid_to"] is None or fact["valid_to"] > (first or ""))
    return first is None or fact["valid_from"] >= first or lasts


def read(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of one of the files."""
    with (HERE / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def with_gold(ledger: Ledger, question: Row) -> Row:
    """Return a question with what the ledger says of its gold."""
    gold = ledger.gold(question)
    return {**question, "relevant": gold.relevant, "stale": gold.stale, "cluster": gold.cluster}


if __name__ == "__main__":
    truth = Ledger(read("ledger.jsonl"), read("turns.jsonl"))
    rows = [with_gold(truth, question) for question in read("questions.jsonl")]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (HERE / "questions.jsonl").write_text(text, encoding="utf-8")
