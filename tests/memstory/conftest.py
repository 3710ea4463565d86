import json
import os
import re
import signal
from dataclasses import replace
from importlib.util import find_spec

import pytest

from memstory.contract.codec import decode
from memstory.language.matchers.means import scores_of
from memstory.results.folder.results_file import results_text
from memstory.results.outcomes import CaseResult, Score, TrialResult, Verdict
from memstory.results.recording import Failure, QuestionRecord, Recording, RetrievalRecord, StepRecord
from memstory.results.runs import NamedRun, Run, make_fingerprint, make_run
from memstory.results.totals import with_totals

NEEDS = {
    "commands/authoring/test_mcp.py": "mcp",
    "commands/authoring/test_probe_tables.py": "httpx",
    "models/test_ollama_chat.py": "ollama",
    "models/test_openai_chat.py": "openai",
    "models/test_unusable_models.py": "openai",
    "pytest_plugin/test_distribution.py": "distributed",
    "pytest_plugin/test_probed_tables.py": "httpx",
    "targets/test_odd_values.py": "langgraph",
    "targets/tables/test_http_target.py": "httpx",
    "targets/tables/test_http_transport.py": "httpx",
    "targets/tables/test_own_rest_server.py": "httpx",
    "targets/tables/test_mcp_target.py": "mcp",
    "targets/vendors/test_langgraph.py": "langgraph",
    "targets/vendors/test_langgraph_factory.py": "langgraph",
    "targets/vendors/test_sqlite.py": "pysqlite3",
    "targets/vendors/test_vendor_faults.py": "langgraph",
    "targets/vendors/test_vendors.py": "langgraph",
    "targets/vendors/test_chroma_server.py": "chromadb",
    "targets/vendors/test_sqlite_vec.py": "sqlite_vec",
}
"""By file of tests the library of an extra that it speaks with."""

# Only `nox -s harness`, which installs no extra, may leave these out: elsewhere a library that is missing is an error.
ALONE = os.environ.get("MEMSTORY_TESTS") == "harness"
collect_ignore = [file for file, library in NEEDS.items() if ALONE and find_spec(library) is None]

# A shell script ignores Ctrl-C for what it starts behind `&`, and so would all that these tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ABOUT = {"embedder": "all-MiniLM-L6-v2", "chat": "offline rules (deterministic stand-in)"}


class MakeCase:
    """Makes results of every kind; a keyword replaces a field of the case."""

    def __call__(self, story="S5", target="topics", outcome="passed", trials=None, **fields):
        trials = (self.trial(outcome=outcome),) if trials is None else trials
        case = CaseResult(
            id=f"{story}[{target}]",
            story=story,
            title=f"Title of {story}",
            target=target,
            where=f"stories/{story.lower()}.yaml:1:1",
            digest="d" * 64,
            outcome=outcome,
            reason=None if outcome == "passed" else f"why it {outcome}",
            trials=tuple(trials),
            covers=("L-15",),
            seconds=0.5,
        )
        return replace(case, **fields)

    def trial(self, outcome="passed", number=0, answer="Your language is Elixir.", **fields):
        passed = outcome == "passed"
        kind = outcome if outcome in {"unsupported", "error", "invalid"} else None
        recording = Recording(
            story="S5",
            target="topics",
            trial=number,
            seed=number,
            steps=() if kind else (self.say(answer),),
            about=ABOUT,
            failure=Failure(kind=kind, message="it broke", detail="Traceback: boom") if kind else None,
            seconds=0.25,
        )
        verdict = Verdict(
            passed=passed,
            field="answer",
            check="contains",
            where="stories/s5.yaml:9:14",
            reason="the answer does not contain 'Elixir'",
            step=(0,),
            expected="'Elixir'",
            actual=answer,
            difference=None if passed else "item added to root",
        )
        verdicts = () if kind else (verdict,)
        made = TrialResult(outcome=outcome, reason=None, verdicts=verdicts, scores=(), recording=recording)
        return replace(made, **fields)

    def say(self, answer):
        call = {"name": "memory_recall", "args": {"topic": "user.language"}, "result": "Elixir", "error": None}
        return StepRecord(
            path=(0,),
            op="say",
            args={"text": "What language do I prefer?"},
            user="ann",
            session="one",
            at="2026-01-01T12:00:00+00:00",
            result={"answer": answer, "tool_calls": [call], "thinking": None, "context": None},
            names={"saved": "x"},
            seconds=0.125,
        )

    def retrieval(self, story="Q1", target="topics"):
        questions = (
            QuestionRecord(id="q1", relevant=("a",), retrieved=("a", "b"), scores=(0.91234567, None), category="plain"),
            QuestionRecord(id="q2", relevant=("c",), retrieved=("b", "c"), scores=(1 / 3, 0.25), category="swapped"),
            QuestionRecord(id="q3", relevant=(), retrieved=("a",), judged=False),
        )
        record = RetrievalRecord(
            name="facts",
            digest="abcdef0123456789",
            k=10,
            documents=60,
            smallest=60,
            questions=questions,
            apart=("swapped",),
            unusable=("q3: no document has the id 'z|z'",),
            seconds=1.5,
        )
        scores = tuple(
            Score(metric=metric, value=value, questions=count, category=category)
            for category, count, value in ((None, 1, 0.75), ("swapped", 1, 0.5), ("plain", 1, 1.0))
            for metric in ("recall@5", "recall@10", "ndcg@10", "mrr")
        )
        trial = self.trial()
        recording = replace(trial.recording, steps=(), retrieval=(record,))
        return self(story, target, trials=[replace(trial, scores=scores, recording=recording)], covers=("H-11",))


@pytest.fixture
def make_case():
    return MakeCase()


def as_written(results, *, complete=True, **about):
    """Return the run of `results` as results.json has it."""
    run = make_run([with_totals(case) for case in results], make_fingerprint(results, **about), complete=complete)
    return decode(Run, json.loads(results_text(run)))


@pytest.fixture
def run_of():
    return as_written


class MakeRun:
    """Makes runs of cases; `found` says for each question at which rank the right document came, 0 for never."""

    def __call__(self, name="one", *cases, **about):
        return NamedRun(name=name, run=as_written(cases, **about))

    def case(self, story="S1", outcome="passed", *, target="mine", trials=1, seeds=None, seconds=(0.25,), **fields):
        times = list(zip(seconds, fields.pop("embedding", [None] * len(seconds)), strict=True))
        about = fields.pop("about", {"store": "v1"})
        made = [self._trial(outcome, number, times, about) for number in (seeds or range(trials))]
        return self._case(story, outcome, target, made, **fields)

    def retrieval(
        self,
        found,
        *,
        story="Q1",
        target="mine",
        k=10,
        outcome="passed",
        digest="data",
        apart=(),
        documents=50,
        **fields,
    ):
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
            name="facts", digest=digest, k=k, documents=documents, smallest=50, questions=questions, apart=apart
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


@pytest.fixture
def results(make_case):
    """One case of every outcome on two targets, and a retrieval case."""
    return [
        make_case("S6", outcome="failed"),
        make_case("S5"),
        make_case("S5", target="layers", outcome="unsupported", reason="'layers' does not support chat"),
        make_case("S10", outcome="error", reason="the store is gone"),
        make_case("S9", outcome="invalid", trials=[], reason="stories/s9.yaml:3:5: unknown step 'sya'"),
        make_case.retrieval(),
    ]


# What follows these is another library's wording, or grows with the language.
OPEN_ENDED = re.compile(r"(regular expression:|JSON Schema[^:\n]*:|Known:|Known are|it needs one of) [^\n]+")


@pytest.fixture
def golden(request):
    """Compare {case: messages}, word for word, with a file of the folder `golden` beside the test.

    With MEMSTORY_GOLDEN=write in the environment, write it first.
    """

    def compare(name, messages):
        path = request.path.parent / "golden" / name
        cases = ("\n".join([f"{case!r:.160}", *(f"  {one}" for one in found)]) for case, found in messages.items())
        text = OPEN_ENDED.sub(r"\1 …", "\n\n".join(cases) + "\n")
        if os.environ.get("MEMSTORY_GOLDEN") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), "better than before? MEMSTORY_GOLDEN=write pytest PATH writes the file"

    return compare
