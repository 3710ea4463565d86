"""How hard lifelines is: no plain search may find most of it, else it could not tell a good memory from a plain one."""

import asyncio
from collections import Counter, defaultdict
from statistics import fmean

import pytest

from memstory.scoring.metrics import recall_at_k

K, DEPTH, RRF = 10, 100, 60
MOST, MOST_OF_A_KIND = 0.60, 0.90


@pytest.fixture(scope="session")
def embed(tmp_path_factory):
    """Texts to unit vectors, shape (texts, 384), by the bundled model."""
    minilm = pytest.importorskip("memstory_reference.adapters.embedding.minilm", reason="no reference here")
    weights = pytest.importorskip("memstory_reference.adapters.embedding.weights")
    embedder = minilm.MiniLmEmbedder(weights.find(tmp_path_factory.mktemp("weights")))
    return lambda texts: asyncio.run(embedder.embed(texts, "document"))


@pytest.mark.slow
def test_no_plain_search_finds_more_than_sixty_percent_nor_all_of_them_nine_tenths_of_a_kind(
    circle, embed, record_property
):
    ids = list(circle.turns)
    turns = embed([turn["text"] for turn in circle.turns.values()])
    asked = [question for question in circle.answerable if question["wording"] == 1]
    found = {name: defaultdict(list) for name in ("words", "vectors", "both")}
    for question, vector in zip(asked, embed([question["text"] for question in asked]), strict=True):
        ranked = {
            "words": circle.by_words(question["text"])[:DEPTH],
            "vectors": [ids[place] for place in (-(turns @ vector)).argsort(kind="stable")[:DEPTH]],
        }
        ranked["both"] = _fused(ranked.values())
        for name, best in ranked.items():
            found[name][question["category"]].append(recall_at_k(best, question["relevant"], K))
    kinds = {name: {kind: fmean(values) for kind, values in kinds.items()} for name, kinds in found.items()}
    macro = {name: fmean(kinds[name].values()) for name in kinds}
    record_property("macro recall@10", macro)
    assert max(macro.values()) <= MOST
    assert max(min(kinds[name][kind] for name in kinds) for kind in kinds["both"]) <= MOST_OF_A_KIND


def _fused(rankings):
    """Return the ids by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""
    scores = Counter()
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] += 1 / (RRF + rank)
    return [id_ for id_, _ in scores.most_common()]
