"""The wording of lifelines: questions and turns share few words, and nothing but its meaning gives gold away."""

import re
from collections import Counter
from statistics import fmean

import numpy as np

MOST_KEYWORDS, MOST_OVERLAP, MOST_AUC, MOST_SHUFFLED = 0.05, 0.35, 0.65, 0.03
SHUFFLES, FOLDS, REPEATS = 10, 5, 5
FIRST_PERSON = {"i", "me", "my", "mine", "we", "our", "ours", "us"}


def test_few_questions_are_answered_by_one_word_that_only_their_gold_has(lifelines, circle):
    holders = circle.holders()
    given = set()
    for question in circle.answerable:
        gold = set(question["relevant"])
        if any(word in holders and holders[word] <= gold for word in lifelines.words(question["text"])):
            given.add(question["id"].rpartition(".")[0])
    asked = {question["id"].rpartition(".")[0] for question in circle.answerable}
    assert len(given) / len(asked) <= MOST_KEYWORDS, sorted(given)


def test_a_paraphrase_shares_no_stem_with_its_gold_and_the_others_few(circle):
    shares = []
    for question in circle.answerable:
        asked = circle.stems(question["text"])
        shared = [asked & circle.stems(circle.said[turn]) for turn in question["relevant"]]
        if question["category"] == "paraphrase":
            assert not any(shared), (question["id"], shared)
        shares.append(max(map(len, shared)) / max(len(asked), 1))
    assert fmean(shares) <= MOST_OVERLAP


def test_no_two_texts_have_the_same_words(lifelines, circle):
    texts = {id_: " ".join(lifelines.words(text)) for id_, text in circle.said.items()}
    texts |= {question["id"]: " ".join(lifelines.words(question["text"])) for question in circle.questions}
    first = {}
    doubled = [(id_, first[text]) for id_, text in texts.items() if first.setdefault(text, id_) != id_]
    assert not doubled


def test_the_wordings_of_a_question_differ_in_words_and_the_asker_is_an_outsider(lifelines, circle):
    for wordings in circle.by_question.values():
        seen = [frozenset(lifelines.words(one["text"])) for one in wordings]
        assert len(set(seen)) == len(seen), wordings[0]["id"]
        if wordings[0]["category"] != "languages":
            assert not any(FIRST_PERSON & words for words in seen), wordings[0]["id"]


def test_gold_of_other_questions_is_not_found(circle):
    ranked = {question["id"]: circle.by_words(question["text"])[:10] for question in circle.answerable}
    found = []
    for seed in range(SHUFFLES):
        order = [circle.answerable[place] for place in np.random.default_rng(seed).permutation(len(ranked))]
        for question, other in zip(order, [*order[1:], order[0]], strict=True):
            gold = set(other["relevant"])
            # Two questions may ask for the same turn: that is not a chance hit.
            if not gold & set(question["relevant"]):
                found.append(len(gold & set(ranked[question["id"]])) / len(gold))
    assert fmean(found) <= MOST_SHUFFLED


def test_length_place_digits_and_question_marks_do_not_tell_gold(circle):
    gold = {turn for question in circle.answerable for turn in question["relevant"]}
    labels = np.array([id_ in gold for id_ in circle.turns])
    assert _crossed_auc(_features(circle), labels) <= MOST_AUC


def _features(circle):
    sizes = Counter(turn["metadata"]["session"] for turn in circle.turns.values())
    seen = Counter()
    rows = []
    for id_, turn in circle.turns.items():
        session, text = turn["metadata"]["session"], circle.said[id_]
        place = seen[session] / (sizes[session] - 1)
        seen[session] += 1
        rows.append((len(text.split()), place, bool(re.search(r"\d", text)), "?" in text))
    return np.array(rows, dtype=float)


def _crossed_auc(rows, labels):
    """Return the mean AUC of a logistic regression on rows that it has not seen."""
    draw = np.random.default_rng(7)
    found = []
    for _ in range(REPEATS):
        fold = np.empty(len(rows), dtype=int)
        for kind in (labels, ~labels):
            fold[kind] = draw.permutation(np.arange(kind.sum()) % FOLDS)
        for one in range(FOLDS):
            seen, unseen = fold != one, fold == one
            scaled = (rows - rows[seen].mean(axis=0)) / rows[seen].std(axis=0)
            scores = scaled[unseen] @ _weights(scaled[seen], labels[seen])
            higher = scores[labels[unseen]][:, None] - scores[~labels[unseen]][None, :]
            found.append(((higher > 0) + (higher == 0) / 2).mean())
    return float(np.mean(found))


def _weights(rows, labels):
    """Return the weights of a logistic regression with a small ridge, by Newton's method."""
    ones = np.hstack([rows, np.ones((len(rows), 1))])
    ridge = np.diag([1.0] * rows.shape[1] + [1e-6])
    weights = np.zeros(ones.shape[1])
    for _ in range(10):
        chance = 1 / (1 + np.exp(-ones @ weights))
        slope = ones.T @ (chance - labels) + ridge @ weights
        weights -= np.linalg.solve((ones * (chance * (1 - chance))[:, None]).T @ ones + ridge, slope)
    return weights[:-1]
