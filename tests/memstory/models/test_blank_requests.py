"""Requests that differ only in ids, dates and times are the same; answers get the ids of the request at hand."""

import json

from hypothesis import given
from hypothesis import strategies as st

from memstory.models.proxy_recording import blank_request

ONE = "0b5ad9d0-6c5e-4f0e-9a59-6f4f2f1c1111"
OTHER = "9f0c3a52-1111-4222-8333-444455556666"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([ONE, OTHER, "2026-01-02", "⟦0⟧", "⟦7⟧"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


def prompt(text, **more):
    return {"messages": [{"role": "user", "content": text}], **more}


def test_ids_dates_and_times_do_not_tell_requests_apart():
    first = blank_request(
        "chat/completions", prompt(f"<instance id={ONE}> on 2026-01-02T10:00:00Z, January 2, 2026, 10:00:00")
    )
    later = blank_request(
        "chat/completions", prompt(f"<instance id={OTHER}> on 2027-03-04T11:30:00Z, March 4, 2027, 11:30:00")
    )
    assert first.key == later.key


def test_words_and_paths_do():
    keys = {
        blank_request(path, prompt(text)).key
        for path in ("chat/completions", "embeddings")
        for text in ("tea", "coffee")
    }
    assert len(keys) == 4


def test_two_ids_are_not_one():
    assert blank_request("c", prompt(f"{ONE} {OTHER}")).key != blank_request("c", prompt(f"{ONE} {ONE}")).key


def test_how_an_answer_is_sent_does_not_matter():
    assert (
        blank_request("c", prompt("tea", stream=True, stream_options={"include_usage": True})).key
        == blank_request("c", prompt("tea")).key
    )


def test_a_recorded_id_becomes_that_of_the_new_request():
    first, later = blank_request("c", prompt(f"memory {ONE}")), blank_request("c", prompt(f"memory {OTHER}"))
    kept = first.blank({"patch": f"change {ONE} and call_abcdefgh"})
    assert later.fill(kept) == {"patch": f"change {OTHER} and call_abcdefgh"}


@given(bodies, json_values)
def test_an_answer_comes_back_as_it_was_to_the_same_request(body, answer):
    answer = json.loads(json.dumps(answer))
    request = blank_request("c", json.loads(json.dumps(body)))
    found = request.fill(request.blank(answer))
    if "⟦" not in json.dumps(answer, ensure_ascii=False):
        assert found == answer


@given(bodies)
def test_the_key_does_not_depend_on_the_order_of_keys(body):
    assert blank_request("c", body).key == blank_request("c", dict(reversed(body.items()))).key
