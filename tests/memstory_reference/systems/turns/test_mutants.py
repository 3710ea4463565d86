"""Each part of the ranking, and each promise of the turns memory, is broken, and its story must fail for it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memstory_reference.adapters.offline_chat import model
from memstory_reference.errors import InputError
from memstory_reference.systems.turns import agent, question, ranking, service, turn
from memstory_reference.systems.turns import memory as interface
from memstory_reference.systems.turns.question import Span
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.stores.index import Columns
from memstory_reference.systems.turns.stores.turns_store import TurnsStore
from memstory_reference.systems.turns.turn import Conditions
from memstory_reference.targets.turns import TurnsFactory
from memstory_reference.text.secret_guard import SecretPolicy

pytestmark = pytest.mark.usefixtures("minilm_weights")
FACTORY = TurnsFactory


def without(*parts):
    """The ranking, without some of its parts."""

    def mutant(plain):
        return lambda pool, question, weights: plain(pool, question, replace(weights, **dict.fromkeys(parts, 0.0)))

    return service, "score_candidates", mutant


def about(**fields):
    """The question, read as another one."""
    return service, "read_question", lambda plain: lambda *asked: replace(plain(*asked), **fields)


def without_conditions(plain):
    async def search(self, *asked, **rest):
        return await plain(self, *asked, **{**rest, "conditions": Conditions()})

    return search


def of_all_times(plain):
    async def search(self, *asked, **rest):
        return await plain(self, *asked, **{**rest, "as_of": None})

    return search


def all_evident(_plain):
    return lambda cosines, _found: cosines * 0 + 1


def all_refused(_plain):
    def refuse(*_):
        raise InputError("it is not liked")

    return refuse


def any_date(_plain):
    return lambda _text: datetime(2024, 1, 1, tzinfo=UTC)


def whole_years(_plain):
    return lambda _, match: Span(int(match[1]))


def all_in_one_session(plain):
    return lambda self, rows: plain(self, [*rows[:3], ["all"] * len(rows[3]), *rows[4:]])


def without_the_metadata(plain):
    return lambda new, *rest: plain(replace(new, metadata={}), *rest)


MUTANTS = [
    ("T50b: what repeats it stays", "forgotten", (agent, "LEAST_WORDS", 1_000)),
    ("T50: the wish is kept word for word", "'walnuts'", (agent, "has_succeeded", lambda _plain: lambda *_: False)),
    ("T50: nothing is listed", "bakery", (agent, "LISTED", 0)),
    ("X6: only what says the same is forgotten", "(ann|ben)", (model, "facts_in", lambda _plain: lambda *_: [])),
    ("T1: whoever spoke", "'speaker'", without("speaker")),
    ("T1: the same person is always meant", "'ben' first", about(named=("Ana Kern",))),
    ("T24: whoever spoke", "first", without("speaker")),
    ("T2: whenever it was said", "'date'", without("date")),
    ("T3: without the turns beside", "'context'", without("context")),
    ("T3: without sessions, what was added next to each other is", "'context'",
     (Columns, "load", all_in_one_session)),
    ("T5: without words", "'words'", without("words")),
    ("T6: without vectors", "'doctor' first", (ranking, "evidence", all_evident), without("cosine")),
    ("T9: without the session", "'session'", without("session")),
    ("T8: something is always found", "'answerable'", (ranking, "evidence", all_evident)),
    ("T8: a floor is kept that nobody asked for", "hits", (service, "checked_number", 0.3)),
    ("T10: whoever spoke", "'person'", without("person")),
    ("T10: nobody is asked what was said", "'speaker'", about(asks_assistant=False)),
    ("T10: roles are not known", "'person'", (turn, "ROLES", ())),
    ("T51: a secret takes the others with it", "was refused", (SecretPolicy, "refusal", all_refused)),
    ("T20: age does not matter", "'recent'", without("recent")),
    ("T20: what follows is no better", "'update'", without("update")),
    ("T20: what was said later is found for an earlier date", "library", (TurnsService, "search", of_all_times)),
    ("T21: what was said stays said", "'update'", without("update")),
    ("T22: a plan stays a plan", "first", without("recent", "update")),
    ("T25: both events are looked for as one", "hits", (service, "compared_events", ())),
    ("T26: what follows is looked for by its own words", "'update'", without("update")),
    ("T26: what held at a date is not followed", "'update'", (ranking, "holding_share", 0.0)),
    ("T27: a season is a year", "'date'", (question, "months_of", whole_years)),
    ("T40: conditions are not kept", "hits", (TurnsService, "search", without_conditions)),
    ("T41: any date will do", "was not refused", (turn, "moment_of", any_date)),
    ("T41: what is known beside the text is lost", "'speaker'", (service, "checked_turn", without_the_metadata)),
    ("T42: a key names as many turns as it likes", "outcomes", (TurnsStore, "by_keys", {})),
    ("T43: remembered text is put in as it is", "text", (service, "as_data", lambda _: lambda text: text)),
    ("T43: as much as there is", "tokens", (service, "count_tokens", 0)),
    ("T44: nothing is forgotten", "'success'", (TurnsService, "delete", [])),
    ("T45: a file is not read", "'imported'", (interface, "read_jsonl", [])),
    ("T47: a session is everything", "hits",
     (TurnsStore, "forget_session", lambda _: lambda self, owner, _session: self.forget_owner(owner))),
]  # fmt: skip


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
