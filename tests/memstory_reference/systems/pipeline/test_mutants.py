"""Each flaw of the specification that a story can show is put in, and the story must fail for it."""

import re
from dataclasses import replace

import pytest

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.models import Reply
from memstory.contract.target import Ref, Scope
from memstory_reference.storage.sql_database import Database
from memstory_reference.systems.pipeline import (
    compression,
    formulas,
    importing,
    ingest,
    memory,
    pipeline_store,
    prompt_block,
    reading,
    recall,
)
from memstory_reference.systems.pipeline.chunk import ChunkType
from memstory_reference.systems.pipeline.ingest import Planner
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.pipeline_store import PipelineStore
from memstory_reference.systems.pipeline.recall import Recaller
from memstory_reference.targets.environment_ports import WatchedModel
from memstory_reference.targets.pipeline import PipelineFactory
from memstory_reference.text import chunks, secret_guard

pytestmark = pytest.mark.usefixtures("minilm_weights")


def reflowed(_plain):
    return lambda text: re.sub(r"\n{2,}", "\n\n", text.strip())


def joined(plain):
    def split(text):
        parts = plain(text)
        return ["\n\n".join(parts)] if len(parts) == 2 else parts

    return split


def at_one_version(plain):
    return lambda held, owner, part, _version, **asked: plain(held, owner, part, "1", **asked)


def one_by_one(plain):
    async def ingest_all(self, utterances, user):
        texts = [[replace(one, text=part) for part in one.text.split("\n\n")] for one in utterances]
        return [[receipt for part in row for (receipt,) in await plain(self, [part], user)] for row in texts]

    return ingest_all


def each_piece_a_text(plain):
    def plan(self, texts, known):
        receipts, writes = plain(self, [[piece] for pieces in texts for piece in pieces], known)
        return [[one for row in receipts for one in row]], writes

    return plan


def of_all_owners(plain):
    owners = set()

    def known(self, owner, *rest):
        mine, others = plain(self, owner, *rest), owners - {owner}
        for theirs in (plain(self, other) for other in others):
            mine.total = mine.total + theirs.total
            mine.count += theirs.count
        owners.add(owner)
        return mine

    return known


def without(name):
    return lambda plain: lambda *args: replace(plain(*args), **{name: {}})


def working_first(plain):
    def route(text, used, **named):
        return ChunkType.WORKING if used.present(text) else plain(text, used, **named)

    return route


def without_hints(plain):
    return lambda self, given, user: plain(self, [replace(one, memory_type_hint=None) for one in given], user)


def every_time(_plain):
    return lambda found: 0.3 * found.has_entity + 0.4 * found.has_number + 0.4 * found.has_preference


def until_one_does_not_fit(_plain):
    def fitting(sizes, budget, most):
        places = []
        for place, size in enumerate(sizes[:most]):
            if sum(sizes[: place + 1]) > budget:
                break
            places += [place] if size else []
        return places

    return fitting


def at_least_one(plain):
    return lambda sizes, budget, most: plain(sizes, budget, max(1, most))


def asked(change):
    """Change what a recall is asked for."""
    return lambda plain: lambda self, ask: plain(self, change(ask))


def preferences_last(plain):
    async def recalled(self, ask):
        result = await plain(self, ask)
        return replace(result, memories=result.memories[::-1])

    return recalled


def generous(plain):
    return lambda sizes, budget, most: plain(sizes, budget * 4 if most == len(sizes) else budget, most)


def by_signal(plain):
    def route(text, used, **named):
        return ChunkType.PROCEDURAL if used.preference(text) else plain(text, used, **named)

    return route


def by_last_word(_plain):
    return lambda content, content_hash: content.split()[-1] if "prefer" in content else content_hash


def like_a_recall(_plain):
    return lambda self, ask: self.recall(ask)


def of_the_newest(plain):
    async def recall(self, ask):
        result = await plain(self, ask)
        return replace(result, memories=result.memories[:10])

    return recall


def admitting(**changes):
    return lambda plain: lambda wanted, **how: plain(replace(wanted, **changes), **how)


def without_compressed(plain):
    def condition(wanted, **how):
        sql, parameters = plain(wanted, **how)
        return f"{sql} AND compressed = 0", parameters

    return condition


def of_everybody(plain):
    return lambda self, _owner, *rest, **named: plain(self, "everybody", *rest, **named)


def set_for_everybody(plain):
    return lambda self, new: plain(self, replace(new, memory=replace(new.memory, user_id="everybody")))


def by_similarity(_plain):
    async def reranked(_query, candidates, reranker):
        return list(candidates), reranker.name

    return reranked


def told_as_written(plain):
    return lambda *args: sorted(plain(*args), key=lambda told: told.content != "second, with {braces}")


def by_format_string(_plain):
    return lambda contents: ("Summarize.\nConversation:\n" + "\n".join(contents)).format(session_content="")


def deleting_originals(plain):
    async def compress(self, user_id, **named):
        report = await plain(self, user_id, **named)
        for one in await self.memories(user_id):
            if one.compressed:
                await self.delete(Ref(id=one.id), Scope(user=user_id))
        return report

    return compress


def saying_so(plain):
    async def chat(*args, **named):
        try:
            return await plain(*args, **named)
        except MemstoryError:
            return Reply(content="The walk could not be summed up.")

    return chat


def or_stop(plain):
    def usable(*args, **named):
        summary = plain(*args, **named)
        if not summary:
            raise UnavailableError("session 'one': no summary")
        return summary

    return usable


def forward_only(plain):
    return lambda self, owner, vector, step: step > 0 and plain(self, owner, vector, step)


def of_plain_tags_only(plain):
    return lambda content: content.replace("</memory>", "") if "\uff1c" in content else plain(content)


def whatever_its_vectors(plain):
    def imported(rows, *args, **named):
        return plain([{**row, "vector": None} for row in rows], *args, **named)

    return imported


def saying(beginning, instead):
    """Run another statement in the place of the one that begins so."""

    def mutant(plain):
        def execute(self, sql, parameters=()):
            return plain(self, instead if sql.startswith(beginning) else sql, parameters)

        return execute

    return mutant


def as_a_text(plain):
    def mutant(self, owner, identifier):
        return [replace(one, compression_source=False, summary_id=one.id) for one in plain(self, owner, identifier)]

    return mutant


def as_before(_plain):
    return lambda *_: "prefer:indentation"


def of_any_length(plain):
    return lambda text, _most, *rest: plain(text, 10**9, *rest)


DELETED = "DELETE FROM preferences WHERE id <> ? AND owner = ? AND key = ? AND id <> ? RETURNING id"
NOTHING = "SELECT id FROM memories WHERE owner = '' AND owner = ?"

FACTORY = PipelineFactory
MUTANTS = [
    ("P1: code is reflowed", "'text' is 'We ran this:\\n\\n```\\na = 1\\n\\nb", (ingest, "clean", reflowed)),
    ("P2: a short chunk joins whatever comes out", "[330], [330]", (formulas, "split_chunks", joined)),
    (
        "P2b: titles end sentences",
        "'text' is 'We asked Dr.'",
        (chunks, "sentence_units", lambda _: lambda text: re.split(r"(?<=[.!?] )(?=[A-Z])", text)),
    ),
    ("P3: each chunk is embedded alone", "'calls' is 6", (PipelineMemory, "ingest_all", one_by_one)),
    ("P3: nothing is cached", "'calls' is 1, not 0", (PipelineStore, "embeddings", {})),
    ("P4b: the centroid moves within a text", "'outcome' is 'discarded'", (Planner, "plan", each_piece_a_text)),
    ("P4: the centroid belongs to everybody", "'importance' is 0.0", (PipelineStore, "read_for_ingest", of_all_owners)),
    (
        "P5: the threshold itself is too little",
        "'outcome' is 'discarded'",
        (ingest, "importance", lambda plain: lambda new, salient: plain(new, salient) - 1e-5),
    ),
    ("P6: signals inside code count", "0.4, 0.4, 0]", (reading, "prose", lambda _: lambda text: text)),
    ("P6: signals count each time", "1.1", (formulas, "salience", every_time)),
    ("P7: working comes before preference", "hits count 0", (ingest, "memory_type_of", working_first)),
    ("P7b: a signal is a statement", "hits are 4", (ingest, "memory_type_of", by_signal)),
    ("P9e: the last word says what it is about", "'outcome' is 'updated'", (ingest, "preference_key", by_last_word)),
    ("P7: a hint is only a hint", "'kind' is 'procedural'", (PipelineMemory, "ingest_all", without_hints)),
    (
        "P9: changed preferences are dropped",
        "'outcome' is 'discarded', not 'updated'",
        (PipelineStore, "read_for_ingest", without("preferences")),
    ),
    (
        "P9: a preference is known by its words",
        "'outcome' is 'discarded', not 'updated'",
        (ingest, "preference_key", lambda _: lambda _content, content_hash: f"content:{content_hash}"),
    ),
    (
        "P9b: novelty is all that tells the same",
        "'outcome' is 'stored', not 'bumped'",
        (PipelineStore, "read_for_ingest", without("twins")),
    ),
    ("P9c: everybody is the user", "'kind' is 'procedural'", (ingest, "USER", "assistant")),
    (
        "P10: the walk stops at what does not fit",
        "data is [[60], ",
        (recall, "fit_budget", until_one_does_not_fit),
        (formulas, "fit_budget", until_one_does_not_fit),
    ),
    (
        "P10: no places still take one",
        "[10], [700",
        (recall, "fit_budget", at_least_one),
        (formulas, "fit_budget", at_least_one),
    ),
    (
        "P10: nothing is divided by nothing",
        "ZeroDivisionError",
        (Recaller, "recall", asked(lambda ask: ask if 1 / ask.token_budget else None)),
    ),
    (
        "P11: preferences take places",
        "a length that is 8, not 12",
        (Recaller, "recall", asked(lambda ask: replace(ask, top_k=max(1, ask.top_k - 7)))),
    ),
    (
        "P11: preferences come last",
        "does not start with",
        (Recaller, "recall", preferences_last),
        (recall, "prompt_block", lambda plain: lambda memories, **named: plain(memories[::-1], **named)),
    ),
    ("P11: preferences take all of the budget", "5 times", (recall, "fit_budget", generous)),
    (
        "P11: preferences ignore the types",
        "a length that is 12, not 5",
        (Recaller, "recall", asked(lambda ask: replace(ask, kinds=(*ask.kinds, ChunkType.PROCEDURAL)))),
    ),
    ("P11b: a search puts preferences first", "hits have", (Recaller, "search", like_a_recall)),
    ("P11c: only the newest preferences are found", "I hate open offices", (Recaller, "recall", of_the_newest)),
    (
        "P12: importance does not matter",
        "too little",
        (pipeline_store, "sql_condition", admitting(least_importance=0.0)),
    ),
    ("P12: whatever is compressed is hidden", "hits count 3", (pipeline_store, "sql_condition", without_compressed)),
    ("P13: what was filtered out is not made up for", "hits count 0", (PipelineStore, "nearest", {})),
    ("P14: the reranker is not asked", "hits have", (recall, "rerank", by_similarity)),
    (
        "P14b: a missing reranker leaves the cosine",
        "hits have",
        (recall, "blend", lambda _: lambda similarity, _terms: similarity),
    ),
    ("P14c: sessions share what is going on", "auth", (pipeline_store, "sql_condition", admitting(session=None))),
    ("P14d: the centroid forgets nothing", "which is not ≤", (PipelineStore, "shift", forward_only)),
    (
        "P14d: the vectors are read once",
        "'vectors' is 1",
        (pipeline_store.HeldOwners, "search", at_one_version),
        (pipeline_store.HeldOwners, "follow", None),
        (pipeline_store.HeldOwners, "drop", None),
    ),
    (
        "P15: ten sessions are enough",
        "'sessions' is 7",
        (PipelineStore, "sessions", lambda plain: lambda *args: ["none", *plain(*args)]),
    ),
    (
        "P15: the newest sessions are compressed",
        "hits lack",
        (PipelineStore, "sessions", lambda plain: lambda *args: plain(*args)[::-1]),
    ),
    ("P16: a session is told as it was written", "'content' is", (PipelineStore, "episodes", told_as_written)),
    ("P16: the prompt is a format string", "KeyError: 'braces'", (compression, "summary_prompt", by_format_string)),
    (
        "P16: originals are deleted",
        "hits count 1",
        (PipelineMemory, "compress", deleting_originals),
        (PipelineStore, "release", None),
    ),
    (
        "P16: the archive is always hidden",
        "not 'first the ferry'",
        (Recaller, "search", asked(lambda ask: replace(ask, include_compressed=False))),
    ),
    (
        "P16: the archive is never hidden",
        "hits include",
        (Recaller, "search", asked(lambda ask: replace(ask, include_compressed=True))),
    ),
    ("P17: a failure is a summary", "was not refused", (WatchedModel, "chat", saying_so)),
    ("P17b: one silent session stops all", "'compressed' is 0", (compression, "usable_summary", or_stop)),
    ("P17c: a summary keeps what was forgotten", "'4711'", (PipelineStore, "release", None)),
    (
        "P18: nothing is an empty block",
        "text is '<memory>\\n</memory>'",
        (recall, "prompt_block", lambda plain: lambda *args, **named: plain(*args, **named) or "<memory>\n</memory>"),
    ),
    (
        "P18: types are told in small letters",
        "\\n[semantic] Ilse",
        (
            recall,
            "prompt_block",
            lambda plain: lambda *args, **named: plain(*args, **named).replace("[SEMANTIC]", "[semantic]"),
        ),
    ),
    (
        "X1p: content is told as it is",
        "'</memory>' 2 times",
        (prompt_block, "harmless_content", lambda _: lambda text: text),
    ),
    ("X1p: only plain tags are escaped", "'&lt;'", (prompt_block, "harmless_content", of_plain_tags_only)),
    ("P20: a vector is believed", "was not refused", (memory, "import_rows", whatever_its_vectors)),
    (
        "P20b: an archive needs no summary",
        "hits count 0",
        (Database, "execute", saying("UPDATE memories SET summary = NULL", NOTHING)),
    ),
    ("P21: an edited summary lets go of its session", "'compressed' is 0", (PipelineStore, "get", as_a_text)),
    ("P21: a preference keeps its key", "hits count 1", (memory, "preference_key", as_before)),
    (
        "P21b: what was replaced is gone",
        "a length that is 1",
        (Database, "execute", saying("UPDATE preferences SET replaced_by", DELETED)),
    ),
    ("P22: nothing is looked at", "payment card", (secret_guard, "secrets_in", ())),
    (
        "P22: an import is not looked at",
        "hunter22",
        (importing, "row_without_secrets", lambda _: lambda row, _config: row),
    ),
    ("P23: a query may be of any length", "was not refused", (memory, "checked_text_in", of_any_length)),
    (
        "X3p: users share one index of preferences",
        "hits count 1",
        (PipelineStore, "preferences", of_everybody),
        (PipelineStore, "preference", of_everybody),
        (PipelineStore, "set", set_for_everybody),
    ),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
