"""That shards merged, in one go or as a tree, are the run in one piece; what is refused is tested with the command."""

import heapq
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import SetupError
from memstory.results.merging import ShardSource, merge_shards
from memstory.results.outcomes import CaseResult, TrialResult
from memstory.results.recording import Recording
from memstory.results.runs import Part, make_fingerprint, make_run, place_of

NAMES = st.tuples(st.sampled_from(["S1", "S2", "S10"]), st.sampled_from([None, "1", "2", "10"]))
KEYS = st.tuples(NAMES, st.sampled_from(["a", "b"]))


def case_of(key, outcome):
    (story, row), target = key
    name = f"{story}[{row}]" if row else story
    recording = Recording(story=story, target=target, about={"store": f"of {target}"})
    trial = TrialResult(outcome=outcome, reason=None, verdicts=(), scores=(), recording=recording)
    return CaseResult(
        id=f"{name}[{target}]", story=story, row=row, title=story, target=target, where="a.yaml:1:1", digest=name,
        outcome=outcome, reason=None, trials=(trial,), redacted={"secrets": 1} if outcome == "failed" else {},
    )  # fmt: skip


def shards_of(cases, numbers, count, **changed):
    """The sources of `count` shards, each case being in the one of its number."""
    sources = []
    for number in range(1, count + 1):
        own = [case for case, of in zip(cases, numbers, strict=True) if of == number]
        part = Part(number=number, count=count, cases=len(own), of=len(cases), digest="d")
        run = make_run(own, replace(make_fingerprint(own), shard=replace(part, **changed), platform=f"m{number % 2}"))
        sources.append(ShardSource(name=str(number), head=replace(run, cases=()), cases=run.cases))
    return sources


def as_source(name, sources, **how):
    head = merge_shards(sources, **how).head
    return ShardSource(name=name, head=head, cases=tuple(heapq.merge(*(one.cases for one in sources), key=place_of)))


@given(
    data=st.data(), outcomes=st.dictionaries(KEYS, st.sampled_from(["passed", "failed", "unsupported"]), max_size=12)
)
def test_merged_in_any_tree_is_the_run_in_one_piece(data, outcomes):
    cases = [case_of(key, outcome) for key, outcome in outcomes.items()]
    count = data.draw(st.integers(1, 5), "shards")
    numbers = data.draw(st.lists(st.integers(1, count), min_size=len(cases), max_size=len(cases)), "number of each")
    whole = make_run(cases, replace(make_fingerprint(cases), platform=" and ".join(["m0", "m1"][-count:])))
    left = data.draw(st.permutations(shards_of(cases, numbers, count)), "order")
    while len(left) > 1:
        some = data.draw(st.integers(2, len(left)), "merged at once")
        left = [*left[some:], as_source(f"m{len(left)}", left[:some], partial=some < len(left))]
    if count == 1:
        left = [as_source("m", left)]
    (merged,) = left
    assert replace(merged.head, cases=merged.cases) == whole


def test_every_case_is_looked_at_once_and_in_order():
    cases = [case_of((("S2", str(row)), "a"), "passed") for row in range(6)]
    seen = []
    merge_shards(shards_of(cases, [1, 2, 3, 3, 2, 1], 3), look=seen.append)
    assert [case.row for case in seen] == ["0", "1", "2", "3", "4", "5"]


def test_a_part_of_a_tree_says_which_shards_it_holds_and_is_refused_beside_one_of_them():
    sources = shards_of([case_of((("S1", str(row)), "a"), "passed") for row in range(3)], [1, 2, 3], 3)
    two = as_source("two", sources[1:], partial=True)
    assert str(two.head.fingerprint.shard) == "shards 2, 3 of 3"
    assert two.head.fingerprint.shard.cases == 2
    with pytest.raises(SetupError, match="shard 1 of 3 is missing"):
        merge_shards([two])
    with pytest.raises(SetupError, match="shard 3 of 3 is there 2 times: 3, two"):
        merge_shards([sources[0], sources[2], two])


def test_the_rows_of_one_story_that_differ_between_shards_are_found_among_many():
    cases = [case_of((("S1", str(row)), target), "passed") for target in "ab" for row in range(9)]
    sources = shards_of(cases, [1] * 9 + [2] * 9, 2)
    other = [replace(case, digest="other") if case.row == "7" else case for case in sources[1].cases]
    with pytest.raises(SetupError, match=r"S1\[7\]: another text of the story: S1\[7\] in 1, other in 2"):
        merge_shards([sources[0], replace(sources[1], cases=other)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cases: cases[:-1], "2 says that 2 passed, and 1 of its cases did"),
        (lambda cases: (replace(cases[0], outcome="failed"), cases[1]), "2 says that 0 failed, and 1 of its cases did"),
        (lambda cases: cases[::-1], r"2 has the case S1\[2\]\[a\] out of order"),
    ],
)
def test_a_shard_whose_cases_are_not_what_its_head_says_is_refused(change, said):
    sources = shards_of([case_of((("S1", str(row)), "a"), "passed") for row in range(4)], [1, 1, 2, 2], 2)
    with pytest.raises(SetupError, match=said):
        merge_shards([sources[0], replace(sources[1], cases=change(sources[1].cases))])


def test_a_shard_that_cannot_be_is_named():
    (source,) = shards_of([], [], 1, number=7)
    with pytest.raises(SetupError, match="there is no shard 7 of 1, which 1 has"):
        merge_shards([source])
