import pytest

from memstory.contract.errors import SetupError, TargetError, UnavailableError
from memstory.running.endings import failure_of


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize("kind", [SetupError, UnavailableError])
def test_a_wrong_set_up_is_told_without_a_traceback(kind):
    failure = failure_of(raised(kind("the command 'npx' is not found; install it")), "far")
    assert (failure.kind, failure.message, failure.detail) == (
        "error",
        "the command 'npx' is not found; install it",
        None,
    )


@pytest.mark.parametrize("error", [TargetError("it fell over"), ValueError("it fell over")])
def test_a_backend_that_broke_is_told_with_its_traceback(error):
    failure = failure_of(raised(error), "far")
    assert failure.kind == "error"
    assert "it fell over" in failure.message
    assert failure.detail.startswith("Traceback")
