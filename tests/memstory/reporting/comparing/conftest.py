"""Runs made by hand: what each target answered to which question, and how each case ended."""

from __future__ import annotations

import pytest

from memstory.language.matchers.means import scores_of
from memstory.reporting import build, make_fingerprint
from memstory.reporting.comparing import Run
from memstory.results.outcomes import CaseResult, TrialResult
from memstory.results.recording import Failure, QuestionRecord, Recording, RetrievalRecord, StepRecord


class MakeRun:
    """Makes runs of cases; `found` says for each question at which rank the right document came, 0 for never."""

    def __call__(self, name="one", *cases, complete=True, options=None, shard=None):
        fingerprint = make_fingerprint(cases, options=options, shard=shard)
        return Run(name=name, document=build(cases, fingerprint, complete=complete))

    def case(self, story="S1", outcome="passed", *, target="mine", trials=1, seeds=None, seconds=(0.25,), **fields):
        times = list(zip(seconds, fields.pop("embedding", [None] * len(seconds)), strict=True))
        about = fields.pop("about", {"store": "v1"})
        made = [self._trial(outcome, number, times, about) for number in (seeds or range(trials))]
        return self._case(story, outcome, target, made, **fields)

    def retrieval(self, found, *, story="Q1", target="mine", k=10, outcome="passed", digest="data", apart=(), **fields):
        questions = tuple(
            QuestionRecord(
                id=f"q{number}",
                relevant=("right",),
                retrieved=tuple("right" if place == rank else f"d{place}" for place in range(1, k + 1)),
                category=category,
                seconds=0.01,
            )
            for number, (rank, category) in enumerate(one if isinstance(one, tuple) else (one, None) for one in found)
        )
        record = RetrievalRecord(
            name="facts", digest=digest, k=k, documents=50, smallest=50, questions=questions, apart=apart
        )
        recording = Recording(story=story, target=target, retrieval=(record,))
        trial = TrialResult(outcome=outcome, reason=None, verdicts=(), scores=scores_of(record), recording=recording)
        return self._case(story, outcome, target, [trial], **fields)

    def _trial(self, outcome, number, times, about):
        broken = outcome not in ("passed", "failed")
        said = {"op": "search", "args": {"query": "q"}, "user": "ann", "session": None, "at": ""}
        steps = tuple(
            StepRecord(path=(place,), seconds=whole, embedding_seconds=embedding, **said)
            for place, (whole, embedding) in enumerate(times)
        )
        recording = Recording(
            story="S1",
            target="mine",
            trial=number,
            seed=number,
            steps=() if broken else steps,
            failure=Failure(kind=outcome, message="no") if broken else None,
            about=about,
        )
        return TrialResult(outcome=outcome, reason=None, verdicts=(), scores=(), recording=recording)

    def _case(self, story, outcome, target, trials, **fields):
        values = {"tags": (), "digest": "0123", "reason": None if outcome == "passed" else f"it {outcome}", **fields}
        return CaseResult(
            id=f"{story}[{target}]",
            story=story,
            title=f"Title of {story}",
            target=target,
            where="a.yaml:1:1",
            outcome=outcome,
            trials=tuple(trials),
            **values,
        )


@pytest.fixture
def run():
    return MakeRun()
