"""The page of what is remembered, in a real Chromium on a real server: by mouse and by keyboard, light and dark."""

import json

import pytest

pytestmark = pytest.mark.slow
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


@pytest.fixture
def opened(chromium, server):
    """Open the page for ann, who is remembered by two facts and a rule; what it logs as an error fails the test."""
    for said in ("I live in Oslo. My sister is a pilot.", "From now on, answer in French."):
        server.ask("POST", "/turn", said=said, session_id="t")
    server.ask("POST", "/end", session_id="t")
    contexts, wrong = [], []

    def open_(*, dark=False, width=1100):
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console",
            lambda said: wrong.append(said.text) if said.type == "error" and "status of 400" not in said.text else None,
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda asked: None if asked.url.startswith((server.url, "blob:")) else wrong.append(asked.url)
        )
        page.goto(f"{server.url}/#{server.user}")
        page.wait_for_selector(".card")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []


def cards(page):
    return page.locator(".card p:first-child").all_inner_texts()


def told(page, words):
    page.wait_for_function("words => document.getElementById('said').textContent.includes(words)", arg=words)


def test_it_counts_lists_and_finds_by_the_labels_that_people_read(opened):
    # C-02, C-18
    page = opened()
    assert page.locator("#counts li").all_inner_texts() == ["facts 2", "sessions 0", "rules 1"]
    assert {text.split()[0] for text in cards(page)} == {"facts", "rules"}
    page.select_option("#kind", "procedural")
    told(page, "1 memory")
    page.select_option("#kind", "")
    page.fill("#query", "Oslo")
    page.press("#query", "Enter")
    told(page, "Found: 1 memory")
    assert cards(page) == ["facts User lives in Oslo"]


def test_a_memory_is_edited_archived_restored_and_deleted(opened, server):
    page = opened()
    page.get_by_role("button", name="Edit: User lives in Oslo").click()
    page.fill("#fields [name=object]", "Bergen")
    page.fill("#fields [name=evidence_quote]", "I live in Bergen.")
    page.get_by_role("button", name="Save").click()
    told(page, "Saved.")
    page.get_by_role("button", name="Archive: User lives in Bergen").click()
    told(page, "Archived. 2 memories")
    page.check("#archived")
    told(page, "3 memories")
    page.get_by_role("button", name="Restore: User lives in Bergen").click()
    told(page, "In use again.")
    page.get_by_role("button", name="Delete: User lives in Bergen").click()
    page.get_by_role("button", name="Keep it").click()
    assert len(server.ask("GET", "/memories")["memories"]) == 3
    page.get_by_role("button", name="Delete: User lives in Bergen").click()
    page.locator("#sure").get_by_role("button", name="Delete").click()
    told(page, "Deleted. 2 memories")
    assert "Bergen" not in json.dumps(server.ask("GET", "/export"))


def test_the_switch_is_kept_and_the_export_is_a_file(opened, server):
    page = opened()
    page.click("#recall")
    told(page, "not used in answers")
    assert server.ask("GET", "/status")["recall"] is False
    page.reload()
    page.wait_for_selector(".card")
    assert not page.is_checked("#recall")
    with page.expect_download() as download:
        page.click("#export")
    exported = json.loads(download.value.path().read_text("utf-8"))
    assert len(exported["records"]) == 3


def test_all_of_it_works_by_keyboard(opened, server):
    page = opened()
    page.keyboard.press("/")
    page.keyboard.type("pilot")
    page.keyboard.press("Enter")
    told(page, "Found:")
    page.get_by_role("button", name="Delete: User's sister works as pilot").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#sure[open]", state="detached")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure[open]")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    told(page, "Deleted.")
    assert len(server.ask("GET", "/memories")["memories"]) == 2


def test_a_question_that_is_opened_again_at_once_takes_the_later_answer(opened, server):
    page = opened()
    page.get_by_role("button", name="Delete: User's sister works as pilot").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#sure[open]")
    # The event of closing is only queued when the button is pressed again.
    page.evaluate(
        "document.getElementById('sure').close(); document.querySelector('[aria-label*=pilot].danger').click()"
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    told(page, "Deleted.")
    assert len(server.ask("GET", "/memories")["memories"]) == 2


def test_what_is_remembered_stays_text(opened, server):
    page = opened()
    fact = next(one for one in server.ask("GET", "/memories", kind="semantic")["memories"])
    server.ask("PATCH", f"/memories/{fact['id']}", content={"object": HOSTILE, "evidence_quote": HOSTILE})
    page.reload()
    page.wait_for_selector(".card")
    assert any(HOSTILE in text for text in cards(page))
    assert page.title() == "What is remembered"
    assert page.locator("#list img, #list script").count() == 0


def test_a_refusal_is_one_sentence_on_the_page(opened):
    page = opened()
    page.get_by_role("button", name="Edit: User lives in Oslo").click()
    page.fill("#fields [name=object]", "4111 1111 1111 1111")
    with page.expect_response(lambda answer: answer.status == 400):
        page.get_by_role("button", name="Save").click()
    told(page, "without the secret")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1100, 360])
def test_it_fits_wide_and_narrow_in_light_and_dark(opened, dark, width, tmp_path):
    page = opened(dark=dark, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in back[4:-1].split(",")) < 200) is dark
    page.screenshot(path=str(tmp_path / "page.png"), full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 10_000
