"""Steps that query the memory: search, context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memstory.contract.target import Capability, Query, Request, Target, Tree
from memstory.language.matchers.expectable import context_tokens
from memstory.language.matchers.hits import needs_of_hit_checks
from memstory.language.reading import Reading, TreePath
from memstory.language.words.memories import hits_of, too_many, with_kinds, without_vector
from memstory.language.words.parts import KINDS, VECTOR, count, free, keys, number, text
from memstory.language.words.times import moment_of
from memstory.language.words.word import Args, Needs, Word, in_list, whole

CONDITIONS: Mapping[str, Capability] = {
    "min_score": "search.min_score",
    "where": "search.where",
    "token_budget": "search.budget",
    "as_of": "search.as_of",
}
"""The arguments of a query that a target must understand, or say that it does not."""

_QUERY = keys(
    "key of a query",
    {
        "query": text("What is asked."),
        "vector": VECTOR,
        "kinds": KINDS,
        "top_k": count("At most so many hits."),
        "min_score": number("No hit below this score."),
        "token_budget": count("At most so many tokens in all."),
        "where": free("Only memories with this metadata."),
        "as_of": text('As it was known at this moment, such as "2026-05-31T10:00:00Z".', title="moment"),
        "options": free("The target's own options."),
    },
    "query",
    type=["string", "object"],
)
_AS_GIVEN = ("top_k", "min_score", "token_budget", "where", "options", "as_of")
_ARGS = "query, kinds?, top_k?, min_score?, token_budget?, where?, options?, as_of? (ISO 8601, UTC)"


def _read(reading: Reading, value: Tree, path: TreePath) -> Args:
    args = dict(value) if isinstance(value, dict) else {"query": value}
    if "as_of" in args:
        args["as_of"] = moment_of(reading, args["as_of"], (*path, "as_of"))
    return with_kinds(without_vector(reading, args, "query", path))


def _query(args: Mapping[str, Tree]) -> Query:
    given = {name: args[name] for name in _AS_GIVEN if args.get(name) is not None}
    return Query(text=args["query"], kinds=tuple(args.get("kinds") or ()), **given)


def _needs(operation: Capability) -> Needs:
    def needs(args: Any) -> list[Capability]:
        return [operation, *(need for name, need in CONDITIONS.items() if name in args)]

    return needs


STEPS: Final = (
    Word(
        name="search",
        summary="ranked retrieval",
        forms="the query, or a mapping",
        grammar=_QUERY,
        read=_read,
        args=_ARGS,
        request=lambda args, scope: Request.of(Target.search, _query(args), scope),
        able={
            "search": "ranked retrieval",
            "search.as_of": "finds what it held at a given moment",
            "search.budget": "keeps a search within a number of tokens",
            "search.explain": "explains the scores of hits",
            "search.min_score": "leaves out hits below a score",
            "search.scores": "gives scores with hits",
            "search.where": "searches by metadata",
        },
        needs=_needs("search"),
        needs_to_judge={"hits": needs_of_hit_checks},
        results={"hits": hits_of},
        faults=too_many("top_k"),
        leads=in_list,
        example="""
- search: when does the ferry leave
  expect: {hits: {count: {ge: 1}}}
- search: {query: when does the ferry leave, top_k: 3, min_score: 0.5, where: {source: port}}
""",
    ),
    Word(
        name="context",
        summary="the text that the memory would put into a prompt",
        forms="the query, or a mapping",
        grammar=_QUERY,
        read=_read,
        args=_ARGS,
        request=lambda args, scope: Request.of(Target.context, _query(args), scope),
        able={"context": "gives the text that it would put into a prompt"},
        needs=_needs("context"),
        results={"text": whole, "context_tokens": context_tokens},
        example="""
- context: {query: when does the ferry leave, token_budget: 200}
  expect:
    text: {contains: nine}
    context_tokens: {le: 200}
""",
    ),
)
