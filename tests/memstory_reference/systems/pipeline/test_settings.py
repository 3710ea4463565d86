import pytest

from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.settings import PipelineSettings


@pytest.mark.parametrize(("threshold", "size"), [(10, 5), (5, 2), (3, 1), (1, 1)])
def test_one_pass_compresses_half_as_many_sessions_as_the_threshold_rounded_down_but_one_at_least(threshold, size):
    assert PipelineSettings().merge({"compression_threshold": threshold}, "test").sessions_a_pass == size


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"top": 1}, "unknown setting 'top'.* Known: path, store, "),
        ({"store_threshold": 1.1}, "store_threshold is 1.1; allowed: a number from 0 to 1"),
        ({"store_threshold": float("nan")}, "store_threshold"),
        ({"max_chunk_tokens": 0}, "max_chunk_tokens is 0; allowed: a whole number from 1"),
        ({"max_chunk_tokens": 10.5}, "max_chunk_tokens"),
        ({"max_chunk_tokens": True}, "max_chunk_tokens"),
        ({"min_chunk_tokens": 301}, "min_chunk_tokens is 301, more than max_chunk_tokens, 300"),
        ({"compression_threshold": 0}, "compression_threshold"),
        ({"auto_compress": 1}, "auto_compress is 1; allowed: true or false"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(values, message):
    with pytest.raises(InputError, match=message):
        PipelineSettings().merge(values, "test")


def test_no_number_of_sessions_means_half_the_threshold():
    assert PipelineSettings().merge({"sessions_to_compress": None}, "test").sessions_a_pass == 5
    assert PipelineSettings().merge({"sessions_to_compress": 7}, "test").sessions_a_pass == 7
