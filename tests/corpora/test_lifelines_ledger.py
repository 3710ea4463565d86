"""The truth of lifelines: ledger, turns and questions agree, and gold is what the ledger says."""

import hashlib
import re
from collections import Counter, defaultdict
from datetime import date

import numpy as np
import pytest

from memstory.scoring.metrics import recall_at_k

SIZES = {
    "single": (30, 1, 1),
    "paraphrase": (30, 1, 1),
    "multi_hop": (30, 2, 3),
    "order": (20, 2, 2),
    "as_of": (25, 1, 1),
    "latest": (30, 1, 1),
    "who_said": (20, 1, 1),
    "negation": (20, 1, 2),
    "count": (20, 3, 6),
    "cause": (20, 1, 2),
    "same_name": (20, 1, 1),
    "numbers": (20, 1, 1),
    "languages": (15, 1, 1),
    "absent": (30, 0, 0),
}
"""Questions of each category in a circle, and the least and most turns that answer one."""

RULES = {
    "order": "order",
    "as_of": "as_of",
    "latest": "latest",
    "who_said": "told_by",
    "count": "all",
    "absent": "none",
}


def test_each_circle_has_the_turns_sessions_and_questions_that_it_is_to_have(circle):
    assert len(circle.turns) >= 760
    sessions = Counter(turn["metadata"]["session"] for turn in circle.turns.values())
    assert len(sessions) == 40
    assert set(sessions.values()) <= {19, 20, 21}
    assert len({turn["metadata"]["speaker"] for turn in circle.turns.values()}) == 3
    counts = Counter(wordings[0]["category"] for wordings in circle.by_question.values())
    assert counts == {category: count for category, (count, _, _) in SIZES.items()}
    assert {tuple(one["wording"] for one in wordings) for wordings in circle.by_question.values()} == {(1, 2, 3)}
    assert len(circle.ledger) >= 300


def test_ids_are_used_once_and_turns_are_in_the_order_of_time(lifelines, circle):
    for rows, name in ((lifelines.ledger, "fact"), (lifelines.turns, "id"), (lifelines.questions, "id")):
        assert len({row[name] for row in rows}) == len(rows)
    said = defaultdict(list)
    for turn in circle.turns.values():
        said[turn["metadata"]["session"]].append((turn["metadata"]["said_at"], turn["id"]))
    for session, turns in said.items():
        assert turns == sorted(turns), session
        assert len({moment[:10] for moment, _ in turns}) == 1, session


def test_turns_are_of_the_length_in_which_people_talk_and_begin_with_date_and_speaker(circle):
    for id_, turn in circle.turns.items():
        about = turn["metadata"]
        assert turn["text"] == f"[{about['said_at'][:10]}] {about['speaker']}: {circle.said[id_]}"
        assert 8 <= len(circle.said[id_].split()) <= 60, id_


def test_computed_gold_is_what_the_file_has(lifelines):
    truth = lifelines.gold.Ledger(lifelines.ledger, lifelines.turns)
    for question in lifelines.questions:
        assert lifelines.gold.with_gold(truth, question) == question


def test_each_category_has_its_rule_and_as_many_gold_turns_as_it_is_to_have(circle):
    for question in circle.questions:
        category = question["category"]
        assert question["metadata"]["rule"]["pick"] == RULES.get(category, "facts"), question["id"]
        _, least, most = SIZES[category]
        assert least <= len(question["relevant"]) <= most, question["id"]
        assert set(question["relevant"] + question["stale"]) <= set(circle.turns)


def test_no_question_is_asked_before_its_answer_was_said(circle):
    for question in circle.questions:
        said = [circle.turns[turn]["metadata"]["said_at"][:10] for turn in question["relevant"]]
        assert all(day <= question["asked_at"] for day in said), question["id"]


def test_every_fact_is_told_and_only_where_the_ledger_says(circle):
    for fact in circle.ledger:
        sessions = fact.get("sessions") or [fact["session"]]
        announced = sorted(zip(sessions, fact["told_by"], strict=True))
        turns = [circle.turns[turn]["metadata"] for turn in fact["told_in"]]
        assert sorted((turn["session"], turn["speaker"]) for turn in turns) == announced, fact["fact"]


def test_on_every_day_of_a_chain_exactly_one_value_holds(lifelines, circle):
    truth = lifelines.gold.Ledger(circle.ledger, circle.turns.values())
    chains = {(fact["holder"], fact["attribute"]) for fact in circle.ledger if fact["kind"] == "state"}
    for holder, attribute in chains:
        values = [fact for fact in truth.chain(holder, attribute) if fact["status"] != "denied"]
        ends = {fact["valid_to"] for fact in values}
        days = {fact["valid_from"] for fact in values} | (ends - {None})
        # After the last value nothing need hold.
        last = None if None in ends else max(ends, default=None)
        for day in days - {last}:
            assert len(truth.holding(values, day)) == 1, (holder, attribute, day)


def test_a_cancelled_plan_is_called_off_by_a_fact_of_its_own_and_a_cause_is_told_in_another_session(circle):
    facts = {fact["fact"]: fact for fact in circle.ledger}
    called_off = {fact["cause"] for fact in circle.ledger if fact["status"] == "true"}
    for fact in circle.ledger:
        assert fact["status"] in {"true", "cancelled", "denied"}
        assert fact["status"] != "cancelled" or fact["fact"] in called_off, fact["fact"]
        if fact["cause"] is not None:
            cause = facts[fact["cause"]]
            assert {turn[:8] for turn in cause["told_in"]}.isdisjoint(turn[:8] for turn in fact["told_in"])


def test_facts_have_dates_and_end_after_they_begin(circle):
    for fact in circle.ledger:
        begin = date.fromisoformat(fact["valid_from"])
        assert fact["valid_to"] is None or date.fromisoformat(fact["valid_to"]) >= begin, fact["fact"]


def test_absent_questions_have_no_fact_and_every_one_of_their_words_occurs(lifelines, circle):
    stems = circle.holders(lifelines.stem)
    for question in circle.questions:
        if question["category"] == "absent":
            asked = {word for word in lifelines.words(question["text"]) if word not in lifelines.stop and len(word) > 1}
            assert not [word for word in asked if lifelines.stem(word) not in stems], question["id"]


def test_the_circles_share_no_speaker_and_no_name_of_a_holder(lifelines):
    one, other = (
        {fact["holder"] for fact in circle.ledger} | {turn["metadata"]["speaker"] for turn in circle.turns.values()}
        for circle in lifelines.circles
    )
    assert not one & other - {"the house", "the club"}


def test_an_oracle_finds_everything_and_no_control_without_knowledge_finds_much(circle):
    everything = list(circle.turns)
    draw = np.random.default_rng(7)
    found = {"oracle": [], "nothing": [], "random": [], "everything": []}
    for question in circle.answerable:
        gold = question["relevant"]
        ranked = {
            "oracle": gold,
            "nothing": [],
            "random": draw.permutation(everything)[:10].tolist(),
            "everything": everything,
        }
        for name, ids in ranked.items():
            found[name].append(recall_at_k(ids, gold, 10))
    means = {name: sum(values) / len(values) for name, values in found.items()}
    assert (means["oracle"], means["nothing"]) == (1, 0)
    assert means["random"] < 0.03
    assert means["everything"] < 0.03


def test_the_closed_circle_is_what_its_digest_says(lifelines):
    digest = hashlib.sha256()
    for name in lifelines.gold.FILES:
        for line in (lifelines.folder / name).read_bytes().splitlines(keepends=True):
            if b'"circle": 2' in line:
                digest.update(line)
    closed, _ = re.findall(r"\b[0-9a-f]{64}\b", (lifelines.folder / "README.md").read_text("utf-8"))
    assert digest.hexdigest() == closed, "circle two is closed: nobody mends it"


def test_the_card_has_the_digest_of_the_files_and_a_line_for_each_language(lifelines):
    card = (lifelines.folder / "README.md").read_text("utf-8")
    (command,) = re.findall(r"`cat (.*) \| sha256sum`", card)
    whole = b"".join((lifelines.folder / name).read_bytes() for name in command.split())
    _, written = re.findall(r"\b[0-9a-f]{64}\b", card)
    assert hashlib.sha256(whole).hexdigest() == written, "other data are another version"
    spoken = {row["language"] for row in lifelines.ledger if "language" in row}
    assert set(re.search(r"language: \[(.*)\]", card)[1].split(", ")) == {"en", *spoken}


@pytest.fixture
def sheet(lifelines):
    gold = {question["id"].rpartition(".")[0]: question["relevant"] for question in lifelines.questions}
    return [(row, gold[row["id"]]) for row in lifelines.answers]


def test_eighty_questions_were_answered_from_the_turns_alone_and_nearly_all_name_their_gold(sheet):
    assert len(sheet) == len({row["id"] for row, _ in sheet}) == 80
    agree = sum(set(gold) <= set(row["turns"]) and bool(gold) == bool(row["turns"]) for row, gold in sheet)
    assert agree / len(sheet) >= 0.95
