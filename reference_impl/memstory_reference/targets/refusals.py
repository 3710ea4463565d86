"""The reference's errors in the harness's words, by who must act."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memstory.contract.errors import (
    MemstoryError,
    NotSupported,
    Refused,
    SetupError,
    StoryError,
    TargetError,
    UnavailableError,
)
from memstory.contract.models import ChatModelUnavailableError
from memstory_reference.errors import InputError, UnknownTextError


@contextmanager
def harness_errors(*, is_fault_injected: bool = False, failures: Sequence[UnavailableError] = ()) -> Iterator[None]:
    """Turn what the reference raises inside into what the harness knows.

    A part that is down because the story made it so is an answer that the story judges; otherwise it is an error, also
    where a system already put it into words: `failures` holds what really failed so far.
    """
    unavailable = Refused if is_fault_injected else TargetError
    try:
        yield
        if failures:
            raise TargetError(f"Memory unavailable: {failures[0]}") from failures[0]  # noqa: TRY301  (no error of the reference)
    except (NotSupported, Refused, SetupError, StoryError, TargetError):
        raise
    except UnknownTextError as error:
        raise StoryError(str(error)) from error
    except InputError as error:
        raise Refused(str(error)) from error
    except ChatModelUnavailableError as error:
        raise unavailable(f"Model unavailable: {error}") from error
    except UnavailableError as error:
        raise unavailable(f"Memory unavailable: {error}") from error
    except MemstoryError as error:
        raise TargetError(str(error)) from error


@contextmanager
def story_errors() -> Iterator[None]:
    """Turn refused input into a wrong story: for options and vectors, which the story's author wrote."""
    try:
        yield
    except InputError as error:
        raise StoryError(str(error)) from error
