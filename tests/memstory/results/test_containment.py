"""A forbidden text is found in every disguise that a reader does not notice, and plain text raises no false alarm."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.results.containment import UNSEEN, found_in, is_in

WORD = st.text("abcdeABCDEzZ0123456789äß", min_size=1, max_size=6)
JOINTS = (" ", " ", " & ", "&", " * ", "*", " ** ", "-", " - ", "_", ", ", " ; ", "'", " 'n' ", ' "', '" ', ". ", "\n")


@st.composite
def sentences(draw):
    words = draw(st.lists(WORD, min_size=1, max_size=8))
    joints = draw(st.lists(st.sampled_from(JOINTS), min_size=len(words), max_size=len(words)))
    return "".join(word + joint for word, joint in zip(words, joints, strict=True)).strip()


@pytest.mark.parametrize(
    ("sought", "seen"),
    [
        ("Ana's PIN", "it is Ana\u2019s PIN"),
        ("Ana's PIN", "it is Ana\u2018s PIN"),
        ("Ana\u2019s PIN", "it is Ana's PIN"),
        ("Ana's PIN", "it is Ana&#39;s PIN"),
        ("Ana's PIN", "it is Ana&apos;s&nbsp;PIN"),
        ("Ana's PIN", "it is Ana&rsquo;s PIN"),
        ("tea & milk", "tea &amp; milk"),
        ("kestrel", "kes\u200btrel"),
        ("kestrel", "kes\u00adtrel"),
        ("kestrel", "kes&shy;trel"),
        ("kestrel", "kes\u2060\ufefftrel"),
        ("kestrel", "kes**trel**"),
        ("the code is 4711", "the code is **4711**."),
        ("the code is 4711", "the *code* is `4711`."),
        ("the code is 4711", "**the\ncode** is ***4711***"),
        ("well-known", "well\u2011known"),
        ('the "old" mill', "the \u201cold\u201d mill"),
        ("**mark**", "a **mark** as written"),
        ("&amp;", "written &amp; so"),
        ("Zo\u00eb", r'{"text": "Zo\u00eb"}'),
        ("\U0001f511 4711", r"\ud83d\udd11\n4711"),
        ('the "old" mill', r"the \"old\" mill"),
    ],
)
def test_a_text_is_found_behind_what_a_reader_does_not_see(sought, seen):
    assert is_in(sought, [{"text": seen}])


@pytest.mark.parametrize(
    ("sought", "seen"),
    [
        ("234", "2*3*4"),
        ("abc", "a * b * c"),
        ("a b", "a&b"),
        ("3 4", "3 ** 4 ** 5"),
        ("initpy", "__init__.py"),
        ("None", None),
        ("on", {"text": None}),
        ("\u00a9", "a&copy=b"),
    ],
)
def test_a_text_that_is_not_there_is_not_found(sought, seen):
    assert not is_in(sought, seen)


@given(sentences(), st.randoms(use_true_random=False))
def test_no_disguise_hides_a_text(text, random):
    assert is_in(text, f"before {disguised(text, random)} after")


def disguised(text: str, random: Random) -> str:
    start = random.randrange(len(text))
    end = random.randrange(start, len(text)) + 1
    shown = [disguise(sign, random) for sign in text]
    if not text[start].isspace() and not text[end - 1].isspace() and "*" not in text:
        shown[start] = f"**{shown[start]}"
        shown[end - 1] += "**"
    return "".join(shown)


def disguise(sign: str, random: Random) -> str:
    shown = random.choice(
        (sign, sign.upper() if len(sign.upper()) == 1 else sign, f"&#{ord(sign)};", f"&#x{ord(sign):X};")
    )
    shown = random.choice((shown, f"\\u{ord(sign):04x}"))
    shown = random.choice("'\u2019\u2018") if shown == "'" else {"&": "&amp;"}.get(shown, shown)
    return shown + random.choice(("", "", random.choice(sorted(UNSEEN))))


@given(sentences(), sentences())
def test_plain_text_holds_just_what_is_written_in_it(sought, seen):
    def folded(text):
        return " ".join(text.casefold().split())

    assert is_in(sought, seen) == (folded(sought) in folded(seen))


def test_of_several_texts_those_that_are_there_are_named():
    assert found_in(["tea", "jam", "rum"], {"a": ["Tea", 1], "rum": None}) == {"tea", "rum"}
