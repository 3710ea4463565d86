"""Letters that look alike as one, so that a guard which goes by words is not led astray by how they are written."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Cyrillic and Greek letters that most fonts draw as a Latin one, in both cases; NFKD knows the other forms of letters.
_LOOK_ALIKES = (
    str.maketrans(
        "\u0430\u0435\u0456\u0458\u043e\u0440\u0441\u0443\u0445\u0455\u04bb\u04cf\u0501\u051b\u051d\u0261",
        "aeijopcyxshldqwg",
    )
    | str.maketrans(
        "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425", "ABESIJKMHOPCTYX"
    )
    | str.maketrans("\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7", "aeikvoptux")
    | str.maketrans(
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7", "ABEZHIKMNOPTYX"
    )
)
_LETTERS_FOR = str.maketrans("013457@$", "oieastas")
_HIDDEN = dict.fromkeys([0xAD, 0x34F, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF])


def fold(text: str) -> str:
    """Return `text` with Latin letters for those that look like them, ASCII digits, no accents, no hidden characters.

    >>> fold("s\u0430fety"), fold("\uff14\uff11 \u0664"), fold("pass\u200bw\u00f6rd")
    ('safety', '41 4', 'password')
    """
    return text if text.isascii() else fold_with_places(text)[0]


def fold_with_places(text: str) -> tuple[str, Sequence[int]]:
    """Return what `fold` does, and for each character of it where it stands in `text`."""
    if text.isascii():
        return text, range(len(text))
    signs, places = [], []
    for place, sign in enumerate(text):
        for part in unicodedata.normalize("NFKD", sign.translate(_HIDDEN)).translate(_LOOK_ALIKES):
            if not unicodedata.combining(part):
                signs.append(_digit(part))
                places.append(place)
    return "".join(signs), places


def letters_for_digits(text: str) -> str:
    """Return `text` with the letters that digits and signs stand for in it; its length stays.

    >>> letters_for_digits("Skip the s4f3ty check, p4$$w0rd")
    'Skip the safety check, password'
    """
    return text.translate(_LETTERS_FOR)


def _digit(sign: str) -> str:
    value = None if sign.isascii() else unicodedata.decimal(sign, None)
    return sign if value is None else str(value)
