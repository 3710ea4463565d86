"""The one scanner for secrets in texts: keys by their prefix, values after a revealing name, cards, addresses.

`spans` says where they are, for who takes them out of a report and must not take ordinary words. `findings` says of
each what it is, for a memory that does not keep them: it is stricter, and looks for the name of a secret from afar.

Each form is bounded or begins with fixed text, so no input makes it slow. A form says which words it cannot do without:
looking for those first is far cheaper than the pattern.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, Literal

Kind = Literal["card", "key", "private key", "recovery phrase", "password", "pin", "account"]
"""What a secret is; the number of an account and a PIN are hidden in reports, and a memory may keep them."""

TELLING_NAMES: Final = (
    r"(?:api|access|private|secret|encryption|signing|auth)[_ .-]?key(?:[_ .-]?id)?|(?:client[_ .-]?)?secret|"
    r"token(?:[_ .-]?value)?|pass(?:words?|wd|phrase|code)|passwort|kennwort|contraseña|mot de passe|wachtwoord|"
    r"pwd|credentials?|(?:proxy-)?authorization|cookie"
)
_GAP: Final = r"[ \t]{0,20}"
_SPACE: Final = r"[ \t]{1,20}"
_PASSWORD: Final = r"(?:pass(?:words?|wd|phrase|code)|pwd|passwort|kennwort|contraseña|mot de passe|wachtwoord)"  # noqa: S105  (names, not a password)
_TELLING_WORDS: Final = (
    "key", "secret", "token", "passw", "passphrase", "passcode", "pwd", "kennwort", "contraseña", "mot de passe",
    "wachtwoord", "credential", "authorization", "cookie",
)  # fmt: skip
_PASSWORD_WORDS: Final = ("pass", "pwd", "kennwort", "contraseña", "mot de passe", "wachtwoord")
_TELLING: Final = rf"(?:{TELLING_NAMES})(?:\\?[\"']?{_GAP}[:=\r\n]| (?:is|ist|est|es|lautet)[ \t])"
_QUOTED: Final = r"""\\?(?:"([^"\\\r\n]+)|'([^'\\\r\n]+))"""
_WORD: Final = r"""[^\s"'\\,;&<>)\]}]+"""
_BARE: Final = f"({_WORD})"
_GROUPS: Final = r"[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8})+"


# Of these patterns a text needs few, and to compile them all would take a good part of every start.
_compile = cache(re.compile)


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A secret in a text: what it is, and where it starts and ends."""

    kind: Kind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Form:
    """A pattern with the secret in its groups; without one of `words` in a lowercased text it cannot be there.

    Nor can it without a match of `near`, which is quicker for it knows lowercase only. `accepts` looks at the match
    once more: an ordinary sentence may have the same form.
    """

    kind: Kind
    pattern: str
    words: tuple[str, ...]
    accepts: Callable[[re.Match[str]], bool] = lambda _: True
    near: str | None = None
    flags: int = 0

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where secrets of this form are in `text`."""
        for found in _compile(self.pattern, self.flags).finditer(text):
            if self.accepts(found):
                yield found.span(_group(found))


# The texts of a run repeat: the same few thousand are in steps, calls, hits and verdicts.
@lru_cache(maxsize=20_000)
def spans(text: str) -> Sequence[tuple[int, int]]:
    """Return where secrets are in `text`, in order; spans that touch are one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(span for _, span in _find_forms(text)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def has_secret(text: str) -> bool:
    """Whether there is a secret in `text`, which may be megabytes: nothing of it is kept."""
    return any(True for _ in _find_forms(text))


def findings(text: str, names: str | None = None) -> Sequence[FoundSecret]:
    """Return the secrets that a memory is asked to keep, by their place; none overlap, and the longer one wins.

    Numbers of cards count wherever they stand, and whatever looks chosen by chance behind the name of a secret, some
    words away too. `names` is the text in which names are looked for: of the same length, with letters for the digits
    that stand for them.

    >>> [found.kind for found in findings("Pay with 4111 1111 1111 1111, my password is tr0ub4dor, my PIN is 4711")]
    ['card', 'password', 'pin']
    """
    named = text if names is None else names
    found = [
        *(FoundSecret("card", start, end) for start, end in _numbers(text) if is_card(text[start:end])),
        *(FoundSecret(form.kind, start, _trim(text, start, end)) for form, (start, end) in _find_forms(text)),
        *(one for name in _NAMES for one in _behind(name, text, named)),
    ]
    taken: list[FoundSecret] = []
    for one in sorted(found, key=lambda one: (one.start - one.end, one.start)):
        if all(one.end <= other.start or other.end <= one.start for other in taken):
            taken.append(one)
    return sorted(taken, key=lambda one: one.start)


def _behind(name: _Name, text: str, named: str) -> Iterator[FoundSecret]:
    """Yield the value behind each name of a secret: what it is said to be, or the first word chosen by chance."""
    kind = name.kind
    for found in _compile(name.pattern, re.IGNORECASE).finditer(named):
        if told := _TOLD.match(text, found.end()):
            value = next(number for number in (1, 2, 3) if told[number] is not None)
            is_quoted = value < 3  # noqa: PLR2004  (the third is bare)
            is_likely = any(map(str.isdigit, told[value])) if name.tells else _is_chance(told[value])
            if (is_quoted and name.tells) or is_likely or (kind == "password" and _is_one_word(told)):
                yield FoundSecret(kind, told.start(value), _trim(text, *told.span(value)))
        elif kind != "pin" and (near := _NEARBY.match(text, found.end())) and _is_chance(near[1]):
            yield FoundSecret(kind, *near.span(1))


def _trim(text: str, start: int, end: int) -> int:
    """Return where a secret ends before the stop of its sentence."""
    return end - (end > start + 1 and text[end - 1] in ".,;:?" and text[end - 2] != ".")


def _is_one_word(told: re.Match[str]) -> bool:
    """Whether a sentence ends with the word that a password is said to be; how or where it is, is none."""
    rest = told.string[told.end() : told.end() + 2]
    word = told[3].rstrip(".,;:!?").lower()
    is_last = not rest.strip() or told[3][-1] in ".!,;"
    return is_last and word.isalpha() and not re.search(_DESCRIBING, word) and word not in _ORDINARY


def _is_chance(value: str) -> bool:
    """Whether a word looks chosen by chance: letters and digits mixed, and no digest, id, path or address."""
    is_mixed = len(re.findall(r"\d+", value)) > 1 and len(set(value)) >= 10  # noqa: PLR2004  (few signs repeat)
    return is_mixed and not _IDENTIFYING.fullmatch(value)


def _numbers(text: str) -> Iterator[tuple[int, int]]:
    """Yield where one number may be: each run of digits as a whole, and what is in it in the groups of a card."""
    for run in (*_RUN.finditer(text), *_GROUPED.finditer(text)):
        groups = [(run.start() + one.start(), run.start() + one.end()) for one in re.finditer(r"\d+", run[0])]
        if run.re is _RUN:
            yield run.span()
            yield from groups
        yield from _in_groups(groups)


def _in_groups(groups: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    lengths = [end - start for start, end in groups]
    for shape in _CARD_GROUPS:
        for first in range(len(groups) - len(shape) + 1):
            last = first + len(shape)
            if tuple(lengths[first:last]) == shape:
                yield groups[first][0], groups[last - 1][1]


def _find_forms(text: str) -> Iterator[tuple[Form, tuple[int, int]]]:
    lowered = text.lower()
    if not text.isascii():
        # Patterns that ignore the case take both for an i.
        lowered = lowered.replace("i\u0307", "i").replace("\u0131", "i")
    for (words, near), forms in _ALIKE.items():
        if any(word in lowered for word in words) and (near is None or _compile(near).search(lowered)):
            for form in forms:
                yield from ((form, span) for span in form.spans(text))


def is_card(text: str) -> bool:
    """Whether the digits are those of a payment card: 13 to 19, with the check digit of Luhn (ISO/IEC 7812)."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    if len(digits) not in _CARD_LENGTHS or digits[0] not in _CARD_STARTS:
        return False
    doubled = [digit * 2 - 9 * (digit * 2 > _ONE_DIGIT) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_CARD_LENGTHS: Final = range(13, 20)
_CARD_GROUPS: Final = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3))
"""How the digits of a card are printed, and so typed."""

_RUN: Final = re.compile(r"(?<![\w.,])\d+(?:[ \-\u2010-\u2015\u2212]\d+)*(?![\w])", re.ASCII)
# With dots or slashes it is a fraction or a date, unless it is grouped as a card is.
_GROUPED: Final = re.compile(r"(?<![\w.,/])\d+(?:[./]\d+)+(?![\w])", re.ASCII)
_OF: Final = r"(?:[ \t](?:of|for|to|on|at|in)[ \t][^.:;=?!\r\n]{1,60}?)?"
_IS: Final = r"[\"']?(?:\s{0,3}[:=?]\s{0,3}|[ \t](?:is|are|was|reads)(?:[ \t]now)?[ \t]{1,3})"
_EDGE: Final = r"(?<![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class _Name:
    """A name of secrets; one that `tells` is the name of nothing else, so that any digit behind it will do."""

    kind: Kind
    pattern: str
    tells: bool = True


def _name(kind: Kind, words: str, behind: str, *, tells: bool = True) -> _Name:
    return _Name(kind, rf"{_EDGE}(?:{words})\b{behind}", tells)


_NEAR_OR_IS: Final = rf"(?:{_OF}{_IS}|(?=[ \t]))"
_NAMES: Final = (
    _name("password", _PASSWORD, _NEAR_OR_IS),
    _name(
        "key",
        r"(?:api|access|auth|secret|private|signing|client|encryption|account)[ _-]?(?:key|token|secret)s?",
        _NEAR_OR_IS,
    ),
    _name("key", "tokens?|secret|key|credentials?", _NEAR_OR_IS, tells=False),
    _name("recovery phrase", "(?:recovery|backup|rescue|reset)[ _-](?:key|code)s?", f"{_OF}{_IS}"),
    _name("pin", "pin(?:[ -](?:code|number))?", f"{_OF}{_IS}"),
)
"""Names of secrets, with what they are of, and the word that says what they are; without it a value may come later."""

_TOLD: Final = re.compile(r"""["']([^"'\r\n]{4,200})["']|[`“‘]([^`”’\r\n]{4,200})[`”’]|([^\s"'`<,;]{4,500})""")
_NEARBY: Final = re.compile(r"(?:[ \t][a-zA-Z']{1,15}){0,4}[ \t][\"'(]?([A-Za-z0-9+/_=~#%!*-]{10,500})")
_IDENTIFYING: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{7,64}|[\d-]+|(?:/[\w.-]*)+", re.IGNORECASE
)
_DESCRIBING: Final = (
    r"(?:ed|ing|ful|less|able|ible|al|ant|ent|ary|ive|ous|ly|ic)$"
    r"|^(?:wrong|right|same|safe|weak|strong|(?:long|short|strong|weak|bett)er|long|short|gone|old|new|good|bad|fine|here|there|secret|unknown|lost|easy|hard"
    r"|simple|complex|empty|blank|public|private|unique|valid|invalid|set|known|kept|stolen|written|hidden|full|nothing)$"
)
"""Endings and words of what tells how a password is, and not what it is."""

_CARD_STARTS: Final = range(3, 7)
_ONE_DIGIT: Final = 9
_LONG: Final = 20


def _group(found: re.Match[str]) -> int:
    return next(number for number, value in enumerate(found.groups(), 1) if value is not None)


def _is_random(found: re.Match[str]) -> bool:
    """Whether a bare value looks chosen by chance: a digit, a sign within, or a long run without spaces."""
    value = found[_group(found)].strip(".!?…")
    return any(map(str.isdigit, value)) or re.search(r"\w[^\w\s.'-]", value) is not None or len(value) > _LONG


def _is_mixed(found: re.Match[str]) -> bool:
    """Whether a bare value has letters and digits, as few plain words have."""
    value = found[_group(found)]
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_scheme(found: re.Match[str]) -> bool:
    return re.match(r"(?i)(?:bearer|basic|digest|token|aws4)\b", found[1]) is not None or _is_random(found)


def _is_phrase(found: re.Match[str]) -> bool:
    """Whether what follows `password:` is one: a sentence begins with an ordinary word, or asks."""
    value = found[_group(found)]
    return not value.endswith("?") and value.split()[0].lower() not in _ORDINARY


def _is_login(found: re.Match[str]) -> bool:
    """Whether the base64 of HTTP's basic scheme holds `user:password` (RFC 7617)."""
    try:
        return b":" in b64decode(found[1], validate=True)
    except NotBase64:
        return False


def _is_payment(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 30) : found.start()].lower()
    return is_card(found[0]) and ("card" in before or not re.search(_COUNTED, before))


def _is_iban(found: re.Match[str]) -> bool:
    """Check the two digits behind the country by ISO 7064, mod 97."""
    account = found[1].replace(" ", "")
    return int("".join(str(int(sign, 36)) for sign in account[4:] + account[:4])) % 97 == 1


def _is_no_placeholder(found: re.Match[str]) -> bool:
    return found[1].lower() not in ("name", "pass", "password", "pw", "pwd", "secret")


_COUNTED: Final = r"order|track|invoice|parcel|shipment|reference|booking|isbn|timestamp|ticket"
_ORDINARY: Final = frozenset([
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "for", "has", "have", "how", "i", "if", "in", "is", "it",
    "my", "needed", "no", "not", "of", "on", "or", "our", "please", "required", "so", "the", "their", "this", "to",
    "under", "was", "we", "what", "when", "where", "which", "who", "with", "wrong", "you", "your",
])  # fmt: skip

ADDRESS: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s/:@?#\"']{0,200}:([^\s/\"']{1,500})@", re.IGNORECASE
)


def _form(
    pattern: str,
    words: str | tuple[str, ...],
    accepts: Callable[[re.Match[str]], bool] = lambda _: True,
    flags: int = re.IGNORECASE,
    *,
    near: str | None = None,
    kind: Kind = "password",
) -> Form:
    words = (words,) if isinstance(words, str) else words
    return Form(kind, pattern, words, accepts, near, flags)


def _telling(*patterns: str, accepts: Callable[[re.Match[str]], bool] = lambda _: True) -> Iterator[Form]:
    """Yield forms with a telling name before the secret."""
    for pattern in patterns:
        yield _form(pattern, _TELLING_WORDS, accepts, near=_TELLING)


FORMS: Final = (
    Form(
        "private key",
        r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z))",
        ("private key",),
        flags=re.DOTALL,
    ),
    Form(
        "key",
        r"(?<![A-Za-z0-9])("
        r"(?:sk|pk|rk)[-_](?=[A-Za-z0-9_-]{0,80}\d)[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{32,}"  # OpenAI, Stripe …
        r"|whsec_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
        r"|xox[a-z]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{20,}"
        r"|ya29\.[A-Za-z0-9_-]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|SK[0-9a-f]{32}(?![0-9a-z])"
        r"|(?:gsk|pcsk)_[A-Za-z0-9_]{20,}|xai-[A-Za-z0-9]{20,}|do[opr]_v1_[0-9a-f]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}"
        r"|(?:(?:gh[pousr]|hf|whsec)_|xox[a-z]-)(?=[A-Za-z0-9_-]{0,80}\d)[A-Za-z0-9_-]{16,}"
        r"|pa-(?=[A-Za-z0-9_-]{0,40}\d)(?=[A-Za-z0-9_-]{0,40}[A-Z])[A-Za-z0-9_-]{30,}"  # Voyage
        r"|eyJ[A-Za-z0-9_-]{8,1000}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"  # JSON web tokens
        r")",
        (
            *["sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
            *["github_pat_", "glpat-", "xox", "hf_", "npm_", "pypi-", "akia", "asia", "aiza", "gocspx-", "ya29."],
            *["sg.", "xai-", "_v1_", "age-secret", "pa-", "eyj"],
            *(f"sk{digit}" for digit in "0123456789abcdef"),
        ),
    ),
    # Of the next two and of cards, the look behind comes after the first sign, so that the search can jump to it.
    Form(
        "key", r"([MNO](?<![A-Za-z0-9].)[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})", (".",)
    ),  # Discord
    Form("key", r"(?<![A-Za-z0-9])(\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-]))", (":aa",)),  # Telegram
    _form(  # hosts of models, code, data and dashboards, each with its own beginning
        r"(?<![A-Za-z0-9])("
        r"shp(?:at|ca|pa|ss)_[0-9a-f]{32}|key-[0-9a-f]{32}|sq0[a-z]{3}-[\w-]{22,}|dapi[0-9a-f]{32}|lin_api_[A-Za-z0-9]{32,}"
        r"|ntn_[A-Za-z0-9]{40,}|dp\.(?:pt|st|ct)\.[A-Za-z0-9._-]{40,}|hv[sb]\.[\w-]{24,}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}"
        r"|pscale_(?:tkn|pw|oauth)_[\w.-]{32,}|r8_[A-Za-z0-9]{36,}|pplx-[A-Za-z0-9]{32,}|figd_[\w-]{32,}"
        r"|glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|sntrys_[\w+/=-]{40,}|NRAK-[A-Z0-9]{26,}|sbp_[0-9a-f]{40}|ATATT3[\w=-]{40,}"
        r"|PMAK-[0-9a-f]{24}-[0-9a-f]{32,}"
        r")",
        (
            *["shpat_", "shpca_", "shppa_", "shpss_", "key-", "sq0", "dapi", "lin_api_", "ntn_", "dp.", "hvs.", "hvb."],
            *[".atlasv1.", "pscale_", "r8_", "pplx-", "figd_", "glsa_", "sntrys_", "nrak-", "sbp_", "atatt3", "pmak-"],
        ),
        flags=re.ASCII,
        kind="key",
    ),
    _form(rf'"auth"{_GAP}:{_GAP}"([A-Za-z0-9+/=]{{8,}})"', '"auth"', _is_login),
    _form(rf"[A-Z0-9]_PASS=({_WORD})", "_pass=", flags=re.ASCII),
    _form(rf"\b(?:proxy-)?authorization\\?[\"']?{_GAP}[:=]{_GAP}{_QUOTED}", "authorization"),
    _form(rf"\b(?:proxy-)?authorization\\?[\"']?{_GAP}[:=]{_GAP}([^\"'\\\r\n]+)", "authorization", _is_scheme),
    _form(rf"\b(?:set-)?cookie\\?[\"']?{_GAP}[:=]{_GAP}\\?[\"']?([^\s=;\"']+=[^\"'\\\r\n]+)", "cookie"),
    _form(rf"\bbearer{_SPACE}(?=[^\s\"']{{0,500}}\d)([A-Za-z0-9._~+/=-]{{8,}})", "bearer"),
    _form(rf"\bbasic{_SPACE}([A-Za-z0-9+/=]{{8,}})", "basic", _is_login),
    Form("password", ADDRESS.pattern, ("://",), _is_no_placeholder, flags=ADDRESS.flags),
    _form(r"[?&](?:key|sig|signature|auth|x-(?:amz|goog)-(?:signature|security-token))=([^&\s#\"']+)", "="),
    _form(r"\b(?:(?:account|sharedaccess)key|sig)=([A-Za-z0-9%+/=_-]{16,})", ("key=", "sig=")),
    _form(r"hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9/_-]{20,})", "hooks.slack.com"),
    *_telling(
        rf"(?:{TELLING_NAMES})\\?[\"']?{_GAP}(?:={_GAP}{_BARE}|[:=]{_GAP}{_QUOTED})",
        rf"{_PASSWORD}{_GAP}:{_GAP}[>|][-+]?\r?\n({_SPACE}[^\r\n]+(?:\r?\n{_SPACE}[^\r\n]+){{0,50}})",
    ),
    *_telling(
        rf"(?:{TELLING_NAMES})\\?[\"']?{_GAP}:{_GAP}{_BARE}",
        rf"(?:{TELLING_NAMES}){_GAP}\r?\n{_GAP}([A-Za-z0-9_+/=.-]{{16,}})",
        accepts=_is_random,
    ),
    *_telling(rf"{_PASSWORD}{_GAP}:{_GAP}({_WORD}(?:{_SPACE}{_WORD}){{0,11}})", accepts=_is_phrase),
    *_telling(
        rf"\b(?:{_PASSWORD}|(?:api|secret) key) (?:is|ist|est|es|lautet){_SPACE}(?:{_QUOTED}|([^\s\"'\\,;<>]+))",
        accepts=lambda found: found[3] is None or _is_random(found),
    ),
    _form(rf"\bpin(?:[ -]?(?:code|number))?(?:{_SPACE}is|{_GAP}[:=]){_GAP}(\d{{4,8}})\b", "pin", kind="pin"),
    _form(rf"\blogin{_SPACE}\S{{1,200}}{_SPACE}password{_SPACE}(\S+)", "login"),
    _form(r"\bcurl\b[^\n]{0,200}?[ \t](?:-u|--user)[ =]?[^\s:]{1,100}:(\S+)", "curl"),
    _form(r"[ \t]--(?:password|passwd|token|api-key|secret)[ =](\S+)", "--"),
    _form(r"\bmysql\w{0,10}[ \t](?:[^\n]{0,100}?[ \t])?-p(\S{3,})", "mysql"),
    _form(  # twelve words or more, behind their name (BIP 39)
        rf"\b(?:seed|recovery|mnemonic|backup)(?:[ \t][\w']{{1,15}}){{0,6}}?(?:{_GAP}[:=]|[ \t](?:is|are)){_GAP}"
        r"((?:[a-z]{3,8}[ \t,]{1,3}){11,23}[a-z]{3,8})",
        ("seed", "recovery", "mnemonic", "backup"),
        kind="recovery phrase",
    ),
    _form(  # digits or letters in groups, one code or a list of them
        rf"\b(?:recovery|backup|rescue)[ _-](?:key|code)s?(?:[ \t][\w']{{1,15}}){{0,6}}?"
        rf"(?:{_GAP}[:=]|[ \t](?:is|are)){_GAP}"
        rf"((?=\S{{0,20}}\d){_GROUPS}(?:(?:,[ \t]?|[ \t]and[ \t]|[ \t]){_GROUPS}){{0,20}})",
        ("recovery", "backup", "rescue"),
        kind="recovery phrase",
    ),
    _form(r"\botpauth://[^\s\"']{1,500}?[?&]secret=([A-Z2-7]{16,})", "otpauth:", kind="key"),
    _form(rf"\b(?:pw|pass)(?:{_GAP}[:=]{_GAP}|{_SPACE})({_WORD})", ("pw", "pass"), _is_mixed),
    _form(
        rf"\b(?:login|log in|sign in|credentials){_SPACE}\S{{1,100}}{_GAP}[/:]{_GAP}({_WORD})",
        ("log", "sign", "cred"),
        _is_mixed,
    ),
    _form(
        rf"(?<!\S)(\S{{6,200}}){_SPACE}as{_SPACE}(?:(?:my|the|a|its){_SPACE})?{_PASSWORD}\b", _PASSWORD_WORDS, _is_mixed
    ),
    _form(rf"{_PASSWORD}{_SPACE}from{_SPACE}\S{{1,200}}{_SPACE}to{_SPACE}({_WORD})", _PASSWORD_WORDS, _is_mixed),
    _form(rf"{_PASSWORD}{_SPACE}from{_SPACE}({_WORD}){_SPACE}to{_SPACE}\S", _PASSWORD_WORDS, _is_mixed),
    _form(
        r"([A-Z](?<![A-Za-z0-9].)[A-Z]\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?)(?![A-Za-z0-9])",
        "",
        _is_iban,
        re.ASCII,
        kind="account",
    ),
    _form(  # a US social security number
        r"(?<![\w-])((?!000|666|9)\d{3}-\d{2}-\d{4})(?![\w-])", "-", near=r"-\d\d-\d{4}", kind="account"
    ),
    _form(
        r"([3-6](?:(?<=card.)|(?<![\w.-].))\d(?:[ .\u00a0\u202f-]?\d){11,17})(?![\w-])", "", _is_payment, kind="card"
    ),
)

_ALIKE: Final[Mapping[tuple[tuple[str, ...], str | None], list[Form]]] = {
    (words, near): [form for form in FORMS if (form.words, form.near) == (words, near)]
    for words, near in dict.fromkeys((form.words, form.near) for form in FORMS)
}
"""Several forms need the same words, which are looked for once."""
