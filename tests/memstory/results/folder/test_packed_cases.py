import json

from hypothesis import given
from hypothesis import strategies as st

from memstory.results.folder.packed_cases import pack, unpack

NAMES = st.sampled_from(["a", "0", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.floats(allow_nan=False) | st.sampled_from(["", "a", "-"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
CASE = st.fixed_dictionaries({"story": st.sampled_from("ST"), "found": VALUES}, optional={"row": st.just("r")})


@given(st.lists(CASE))
def test_what_was_packed_is_unpacked_as_it_was(cases):
    packed = json.loads(json.dumps(pack(cases)))
    assert json.dumps(list(unpack(packed)), sort_keys=True) == json.dumps(cases, sort_keys=True)
