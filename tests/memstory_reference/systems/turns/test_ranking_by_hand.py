"""The columns give what the rules of docs/explanation/turns.md give turn by turn."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory_reference.systems.turns.question import closeness, holding_share, read_question
from memstory_reference.systems.turns.ranking import Weights, rank_turns, score_candidates
from memstory_reference.systems.turns.turn import NewTurn, checked_turn

LIFELINES = Path(__file__).parents[4] / "stories/corpora/lifelines"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def z(values):
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / spread if spread > 1e-9 else 0.0 for value in values]


def bm25(wanted, turns, numbers):
    words = {number: turn.stems for number, turn in turns.items()}
    mean = sum(map(len, words.values())) / len(words)
    scores = dict.fromkeys(numbers, 0.0)
    for word in wanted:
        holding = sum(word in own for own in words.values())
        rare = math.log(1 + (len(turns) - holding + 0.5) / (holding + 0.5))
        for number in numbers:
            times = words[number].count(word)
            norm = 1.2 * (0.25 + 0.75 * len(words[number]) / (mean or 1))
            scores[number] += rare * times * 2.2 / (times + norm)
    return list(scores.values())


def neighbours(turns, number, step):
    own = turns[number]
    if own.session is None or own.speaker is None:
        return None
    mates = [other for other in sorted(turns) if turns[other].session == own.session and turns[other].speaker]
    place = mates.index(number) + step
    return mates[place] if 0 <= place < len(mates) else None


def terms_by_hand(turns, numbers, question, vectors, asked):
    """All terms but what others say, turn by turn; `vectors` are by number, `asked` is that of the question."""
    own = [turns[number] for number in numbers]

    def together(number):
        sides = [vectors[other] for step in (-1, 1) if (other := neighbours(turns, number, step)) is not None]
        whole = vectors[number] + sum(sides, np.zeros(len(asked))) / 2
        return float(whole @ asked) / max(float(np.linalg.norm(whole)), 1e-9)

    near = z([float(vectors[number] @ asked) for number in numbers])
    found, context = z(bm25(question.stems, turns, numbers)), z([together(number) for number in numbers])
    likeness = [a + 0.7 * b + 0.3 * c for a, b, c in zip(near, found, context, strict=True)]
    known = dict(zip(numbers, likeness, strict=True))
    best = {}
    for turn, value in zip(own, likeness, strict=True):
        if turn.session is not None:
            best[turn.session] = max(best.get(turn.session, -math.inf), value)
    lowest = min(best.values(), default=0.0)
    age = {number: place for place, number in enumerate(sorted(numbers, key=lambda n: (turns[n].moment, n)))}
    fits = [max((closeness(span, turn.moment) for span in question.spans), default=0.0) for turn in own]
    holds = [max((holding_share(span, turn.moment) for span in question.spans), default=0.0) for turn in own]
    dated = [turn.said_at is not None for turn in own]
    now = question.is_about_now
    may_update = [bool(now or (is_dated and holding)) for is_dated, holding in zip(dated, holds, strict=True)]
    likest = sorted(np.flatnonzero(may_update), key=lambda row: -round(likeness[row], 6))[:3]
    rows = np.array([vectors[number] for number in numbers], np.float32)
    likeness_to = {row: z((rows @ rows[row]).tolist()) for row in likest}

    def followed(row):
        older = [one for one in likest if may_update[row] and age[numbers[one]] < age[numbers[row]]]
        return sum(max(likeness_to[one][row], 0.0) for one in older) / max(len(likest), 1)

    foreign = [turn.role in ("assistant", "tool", "system", "web") for turn in own]
    of_assistant = [turn.role == "assistant" for turn in own]
    is_meant = [(turn.speaker,) == question.named for turn in own]
    columns = {
        "cosine": near,
        "words": [0.7 * value for value in found],
        "context": [0.3 * value for value in context],
        "following": [0.25 * known.get(neighbours(turns, number, 1), 0.0) for number in numbers],
        "session": [0.5 * value for value in z([best.get(turn.session, lowest) for turn in own])],
        "speaker": [4.0 * one for one in (of_assistant if question.asks_assistant and any(of_assistant) else is_meant)],
        "date": [4.0 * is_dated * max(one, other) for is_dated, one, other in zip(dated, fits, holds, strict=True)],
        "length": [0.5 * (not any(foreign)) * one for one in z([math.log1p(len(turn.stems)) for turn in own])],
        "person": [3.0 * (any(foreign) and not question.asks_assistant) * (not one) for one in foreign],
        "recent": [2.0 * now * value for value in z([age[number] for number in numbers])],
        "update": [2.0 * followed(row) for row in range(len(numbers))],
    }
    assert set(columns) == set(Weights.__dataclass_fields__), "a part is not checked by hand"
    return columns


def check(pool, question, turns, vectors, asked):
    first = score_candidates(pool, question)
    vectors = np.asarray(vectors, np.float32).astype(float)
    by_hand = terms_by_hand(
        turns, pool.numbers.tolist(), question, vectors, np.asarray(asked, np.float32).astype(float)
    )
    for name, values in by_hand.items():
        assert first.terms[name].tolist() == pytest.approx(values, abs=1e-4), name
    read = {row: turns[int(number)] for row, number in enumerate(pool.numbers)}
    sums = dict(enumerate(np.sum(list(by_hand.values()), axis=0)))
    order = rank_turns(first, read)
    assert len(order) == len(read)
    keys = [(-one.score, -one.turn.moment.timestamp(), one.turn.id) for one in order]
    assert keys == sorted(keys)
    rows = {turn.id: row for row, turn in read.items()}
    for one in order:
        assert one.score == pytest.approx(sums[rows[one.turn.id]] + one.terms["outranked"], abs=1e-3)
    few = {row: read[row] for row in first.to_read(5, -1.0).tolist()}
    assert rank_turns(first, few, size=5) == order[:5], "what is read is enough"


def test_the_ranking_of_lifelines_is_what_the_rules_say_turn_by_turn(pool_for):
    rows = [json.loads(line) for line in (LIFELINES / "turns.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["metadata"]["circle"] == 1][:300]
    told = [{name: row["metadata"][name] for name in ("speaker", "session", "said_at")} for row in rows]
    turns = {
        number: checked_turn(NewTurn(text=row["text"].split(": ", 1)[1], metadata=metadata), f"t{number}", NOW)
        for number, (row, metadata) in enumerate(zip(rows, told, strict=True), start=1)
    }
    random = np.random.default_rng(3)
    vectors = random.standard_normal((len(turns) + 1, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = [json.loads(line) for line in (LIFELINES / "questions.jsonl").read_text().splitlines()]
    asked = [one["text"] for one in asked if one["metadata"]["circle"] == 1]
    for text in asked[::25]:
        question = read_question(text, {turn.speaker for turn in turns.values()}, NOW)
        check(pool_for(turns, question, vectors, vectors[0], size=20), question, turns, vectors, vectors[0])


@given(
    st.lists(
        st.tuples(
            st.text("abc ?", min_size=1, max_size=20).filter(str.strip),
            st.sampled_from([None, "Ann", "Ben", "assistant", "tool"]),
            st.sampled_from([None, "s", "t"]),
            st.sampled_from([None, "2025-05-08", "2025-05-10", "2023-01-01"]),
            st.floats(0, math.pi),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(
        ["a b", "Where does Ann live now?", "abc on 8 May 2025", "", "?", "in May", "Ann and Ben", "What did you say?"]
    ),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_pool_is_ranked_as_the_rules_say_turn_by_turn(pool_for, told, text):
    turns = {
        number: checked_turn(NewTurn(text=text, speaker=speaker, session=session, said_at=said_at), f"t{number}", NOW)
        for number, (text, speaker, session, said_at, _) in enumerate(told, start=1)
    }
    angles = [0.0, *(angle for *_, angle in told)]
    vectors = [[math.cos(angle), math.sin(angle)] for angle in angles]
    question = read_question(text, {"Ann", "Ben"}, NOW)
    check(pool_for(turns, question, vectors, [1, 0]), question, turns, vectors, [1, 0])
