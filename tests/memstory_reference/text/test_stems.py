import pytest

from memstory_reference.text.stems import is_about, squeeze


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("My landlord is called Marek.", "my landlord"),
        ("I have a sister in Vilnius.", "a sister"),
        ("The old cars were red.", "old car"),
        ("My daughter Rita is allergic to peanuts.", "Rita's allergy"),
        ("The record of AB-1234-XY is open.", "ab-1234-xy"),
        ("The record of 550e8400-e29b-41d4-a716-446655440000.", "550e8400e29b41d4a716446655440000"),
        ("The record of François has a remark.", "Francois"),
    ],
)
def test_a_text_is_about_what_has_all_its_words_in_any_spelling(text, thing):
    assert is_about(text, ["something else", thing])


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("The office key is on the ring.", "garden shed key"),
        ("Ticket 123456 is open.", "12345"),
        ("Write to alice@acme.io.example today.", "alice@acme.io"),
        ("The invoice 2026-0411 is paid.", "2026-0417"),
        ("Anything at all.", "the"),
        ("Anything at all.", "the my"),
        ("Anything at all.", "---"),
    ],
)
def test_a_text_is_not_about_what_is_only_near(text, thing):
    assert not is_about(text, [thing])


def test_a_squeezed_identifier_has_neither_case_nor_signs():
    assert squeeze("“Ab-12.c_”") == "ab12c"
