"""What a text tells beside the wishes to forget something in it."""

from __future__ import annotations

from memstory_reference.text.english.utterances import Context, read_message
from memstory_reference.text.sentences import sentences


def without_wishes(text: str) -> str:
    """Return a text without the sentences that wish something forgotten: as memories they would keep its name.

    >>> without_wishes("Please forget my allergy. I live in Graz."), without_wishes("I always forget my keys.")
    ('I live in Graz.', 'I always forget my keys.')
    """
    said = sentences(text)
    told = [one for one in said if not read_message(one, Context()).forget]
    return text if len(told) == len(said) else " ".join(told)
