import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.text.secret_guard import SecretPolicy, is_notice, left_out, secret_in

# Numbers that card schemes publish for tests, and keys that were never given out.
CARDS = ["4111111111111111", "5555 5555 5555 4444", "3782-822463-10005", "30569309025904", "6011 1111 1111 1117"]
KEYS = [
    "sk-proj-4f9a8b7c6d5e4f3a2b1c",
    "ghp_0123456789abcdefghijABCDEFGHIJ",
    "AKIAIOSFODNN7EXAMPLE",
    "glpat-0123456789abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize(
    "text", ["Q: my card is {}\nA: Noted.", "{}", "pay with {}, please", "card:{} 12/27", "{} 123"]
)
def test_the_number_of_a_card_is_found_as_people_type_it(card, text):
    assert secret_in(text.format(card)) == "it holds the number of a payment card"


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("text", ["use {} for it", "({})", "KEY={}\nnext line"])
def test_the_key_of_a_service_is_found(key, text):
    assert secret_in(text.format(key)) == "it holds the key of a service"


@pytest.mark.parametrize(
    "text",
    [
        "My password is hunter2!",
        "password: 'tr0ub4dor'",
        "the API key = a1b2c3d4",
        "passphrase is x1y2",
    ],
)
def test_a_password_that_is_told_is_found(text):
    assert secret_in(text) == "it holds a password"


@pytest.mark.parametrize(
    "text",
    [
        "My p4ssw0rd is hunter2",
        "my p\u0430ssword is hunter2",
        "my \uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44 is hunter2",
        "my pass\u200bword is hunter2",
        "\uff14\uff11\uff11\uff11 1111 1111 1111",
        "4111\u00a01111\u00a01111\u00a01111",
        "4111.1111.1111.1111",
        "4111/1111/1111/1111",
        "4111\u20131111\u20131111\u20131111",
        "\u0664\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661",
        "\u0455k-proj-4f9a8b7c6d5e4f3a2b1c",
        "gsk_0123456789abcdefghij",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    ],
)
def test_a_secret_is_found_however_its_letters_are_written(text):
    assert secret_in(text) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("postgres://ann:hunter2@db/x", "it holds a password"),
        ("DB_PASS=hunter2xx", "it holds a password"),
        ("curl -u ann:hunter2xx https://h", "it holds a password"),
        ("whsec_" + "AbCd1234EfGh5678", "it holds the key of a service"),
        ("figd_" + "AbCd1234EfGh5678IjKl9012MnOp3456", "it holds the key of a service"),
        ("ghp_" + "abcdefghij_0123456789_klmnop", "it holds the key of a service"),
    ],
)
def test_what_reports_hide_is_not_remembered_either(text, reason):
    assert secret_in(f"Note: {text}") == reason


@pytest.mark.parametrize("text", ["My IBAN is DE89370400440532013000.", "The number 123-45-6789 is mine."])
def test_the_number_of_an_account_may_be_remembered_though_reports_hide_it(text):
    assert secret_in(text) is None


def test_a_refusal_says_why_and_repeats_nothing():
    policy = SecretPolicy(secrets="refuse")
    assert policy.admit("tea", "coffee") == ["tea", "coffee"]
    with pytest.raises(InputError, match="it holds a password") as error:
        policy.admit("tea", "my password is hunter22")
    assert "hunter22" not in str(error.value)
    assert policy.refusal("tea") is None
    assert "password" in policy.refusal("my password is hunter22")
    assert SecretPolicy().refusal("my password is hunter22") is None


def test_a_text_is_kept_without_its_secret_and_says_what_was_left_out():
    said = "I live in Oslo, my card is 4111 1111 1111 1111 and my password is hunter22, so now you know."
    (kept,) = SecretPolicy().admit(said)
    assert kept.startswith("I live in Oslo, my card is [")
    assert kept.endswith("], so now you know.")
    assert "4111" not in kept
    assert "hunter22" not in kept
    assert left_out(kept) == "left out: the number of a payment card and a password"
    assert SecretPolicy().admit(kept) == [kept]


def test_what_one_text_tells_is_left_out_of_the_others_of_the_same_call():
    said, answer = SecretPolicy().admit("My password is hunter22.", "Noted: hunter22 it is.")
    assert said == "My password is [left out: a password]."
    assert answer == "Noted: [left out: a password] it is."


def test_a_reading_tells_what_no_text_tells_alone():
    assert SecretPolicy().admit("Login", "hunter22") == ["Login", "hunter22"]
    assert is_notice(SecretPolicy().admit("Login", "hunter22", readings=["password: hunter22"])[1])


def test_a_name_in_metadata_tells_what_its_value_is():
    text, kept = SecretPolicy().admit_with("A login.", {"password": "hunter22", "n": 4111111111111111, "at": [1, "x"]})
    assert (text, kept["at"]) == ("A login.", [1, "x"])
    assert is_notice(kept["password"])
    assert is_notice(kept["n"])


def test_a_pin_is_its_owners_choice_and_kept_by_default():
    told = "My PIN is 4711 and the PIN of the door is 905117."
    assert SecretPolicy().admit(told) == [told]
    (kept,) = SecretPolicy(keep_pins=False).admit(told)
    assert not any(pin in kept for pin in ("4711", "905117"))


def test_keep_keeps_all():
    assert SecretPolicy(secrets="keep").admit("My password is hunter22.") == ["My password is hunter22."]
    assert SecretPolicy(secrets="keep").redact("My password is hunter22.") == ["My password is hunter22."]


def test_a_talk_goes_on_without_its_secrets_where_they_are_refused():
    (kept,) = SecretPolicy(secrets="refuse").redact("My password is hunter22.")
    assert kept == "My password is [left out: a password]."


def test_the_places_are_those_of_the_text_as_it_was_written():
    (kept,) = SecretPolicy().admit("Zürich ﬁve: my pass\u200bword is hünter22 – ok?")
    assert kept.startswith("Zürich ﬁve: my pass\u200bword is [left out")
    assert kept.endswith("] – ok?")


@pytest.mark.parametrize(
    "text",
    [
        "Set SLACK_TOKEN to xoxb-your-token.",
        'api_key = os.environ["OPENAI_API_KEY"]',
        "password: <your password>",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "DB_PASSWORD=changeme",
        "export KEY=sk-...",
        "def login(user: str, password: str) -> None:",
    ],
)
def test_what_only_stands_where_a_secret_would_is_kept(text):
    assert SecretPolicy().admit(text) == [text]


def test_a_warning_names_what_was_left_out_and_repeats_nothing(caplog):
    SecretPolicy().admit("My password is hunter22.")
    assert "a text is kept without a password" in caplog.text
    assert "hunter22" not in caplog.text


def test_a_private_key_is_found():
    assert secret_in("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n") == "it holds a private key"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "My favourite language is Elixir.",
        "Call me at +43 664 123 4567 or 0664 7654321.",
        "The order 4111 1111 1111 1112 has a wrong check digit.",
        "Pi is 3.14159265358979323846.",
        "It was on 2026-05-30 at 09:00, build 20260530.",
        "The id is 123e4567-e89b-12d3-a456-426614174000.",
        "The password is important, so keep it.",
        "How do I reset my password?",
        "The sk-learn pages call it a token.",
        "I pinned it: 4 pins are 40 cents.",
    ],
)
def test_what_is_no_secret_may_be_remembered(text):
    assert secret_in(text) is None


@given(st.text(), st.sampled_from([*CARDS, *KEYS]))
def test_a_secret_is_found_whatever_the_lines_around_it_say(around, secret):
    assert secret_in(f"{around}\n\n{secret}\n\n{around}") is not None


@given(st.text(st.sampled_from("0123456789 -skpwordi:=.\n")))
def test_a_reason_never_holds_what_was_found(text):
    assert not any(map(str.isdigit, secret_in(text) or ""))
