import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.servers.nats_wire import address_without_password, from_bytes, servers_of, to_bytes
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope

TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, JSON), TEXT, TEXT, st.none() | TEXT)
def test_an_envelope_comes_out_as_it_went_in(payload, publisher, owner, request_id):
    sent = Envelope(subject="a.b", payload=payload, publisher=publisher, owner=owner, request_id=request_id)
    assert from_bytes("a.b", to_bytes(sent)) == sent


@given(st.binary(max_size=200) | JSON.map(lambda value: repr(value).encode("utf-8", "replace")))
def test_what_others_put_on_the_bus_is_refused_in_words(data):
    with pytest.raises(InputError, match="bus:"):
        from_bytes("a", data)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 2, "publisher": "p", "owner": "o", "payload": {}}',
        '{"format": 1, "publisher": "p", "payload": {}}',
        '{"format": 1, "publisher": "p", "owner": {"$ne": ""}, "payload": {}}',
        '{"format": 1, "publisher": "p", "owner": "o", "payload": []}',
        '{"format": 1, "publisher": "p", "owner": "o", "payload": {}, "request_id": 7}',
        '{"format": 1, "publisher": "p", "owner": "o"}',
        "[" * 100_000,
    ],
)
def test_an_envelope_of_another_shape_is_refused(text):
    with pytest.raises(InputError, match="bus:"):
        from_bytes("a", text.encode())


@pytest.mark.parametrize("address", ["", "127.0.0.1:4222", "http://h", "nats://h,", "nats://h\0", "nats://h p", "nats"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="is not an address of a bus"):
        servers_of(address)


def test_a_password_is_never_shown():
    assert "geheim" not in address_without_password("nats://ann:geheim@h:1, tls://geheim@i:2")
    with pytest.raises(InputError) as refused:
        servers_of("nats ://ann:geheim@h")
    assert "geheim" not in str(refused.value)
