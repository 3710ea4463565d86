from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

FACTS = ["I live in Vienna.", "My sister is Ana.", "I work at Acme."]
ASKED = "Where do I live?"
TOLD = 'You told me: "I live in Vienna."'
LAYERS = ("chat", "--system", "layers")


def trees(folder):
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}


def test_a_user_is_remembered_in_another_thread(typed):
    # C-19
    assert typed(*LAYERS, "--user-id", "ann", "--thread-id", "t1", lines=FACTS).code == 0
    ran = typed(*LAYERS, "--user-id", "ann", "--thread-id", "t2", lines=[ASKED])
    assert (ran.code, TOLD in ran.out) == (0, True)
    assert "facts 3, sessions" in ran.out
    assert Path(".layers").is_dir()


def test_without_a_user_the_thread_owns_the_memory(typed):
    # C-19, C-20
    typed(*LAYERS, "--thread-id", "t1", lines=FACTS)
    assert TOLD in typed(*LAYERS, "--thread-id", "t1", lines=[ASKED]).out
    assert TOLD not in typed(*LAYERS, "--thread-id", "t2", lines=[ASKED]).out
    assert TOLD not in typed(*LAYERS, "--user-id", "t1", lines=[ASKED]).out


def test_a_thread_without_a_name_gets_one_that_comes_back_to_it(typed):
    ran = typed(*LAYERS, lines=FACTS)
    thread = ran.out.partition("--thread-id ")[2].split()[0]
    assert TOLD in typed(*LAYERS, "--thread-id", thread, lines=[ASKED]).out


@pytest.mark.parametrize("mode", ["guest", "incognito", "GUEST"])
def test_a_guest_is_remembered_until_the_end_and_leaves_no_byte(typed, tmp_path, mode):
    # C-18
    typed(*LAYERS, "--user-id", "ann", lines=FACTS)
    before = trees(tmp_path)
    ran = typed(*LAYERS, "--user-id", "ann", "--memory-mode", mode, lines=["I live in Oslo.", ASKED])
    assert "Nothing of this conversation is written" in ran.out
    assert 'You told me: "I live in Oslo."' in ran.out
    assert "mode incognito; embedder none" in ran.out
    assert trees(tmp_path) == before
    assert TOLD in typed(*LAYERS, "--user-id", "ann", lines=[ASKED]).out


def test_a_guest_needs_no_store_at_all(typed, tmp_path):
    assert typed(*LAYERS, "--memory-mode", "guest", lines=FACTS).code == 0
    assert list(tmp_path.iterdir()) == []


def test_synced_says_that_it_does_not_sync(typed):
    # CF-10
    assert "mode synced, sync not implemented" in typed(*LAYERS, "--memory-mode", "synced").out


def test_leaving_ends_the_session_and_keeps_its_summary(typed):
    # C-13, C-15
    long = ["I moved to a small flat near the park with my two cats and a piano last week.", *FACTS, "I like tea."]
    assert "The session is ended: its summary is kept." in typed(*LAYERS, "--user-id", "ann", lines=long).out
    assert "sessions 1" in typed(*LAYERS, "--user-id", "ann").out


def test_the_commands_of_the_conversation_work(typed):
    out = typed(*LAYERS, "--user-id", "ann", lines=[*FACTS, "/status", "/end", "/end", ASKED, "/context", "/help"]).out
    assert "facts 3, sessions 0, rules 0; held 0" in out
    assert "There is no session to end." in out
    assert '[location] User LIVES_IN Vienna — "I live in Vienna."' in out
    assert "/quit" in out
    assert typed(*LAYERS, lines=["/quit", "never heard"]).out.count("I have heard you.") == 0


def test_a_wrong_command_names_the_nearest_and_fails_a_script(typed):
    ran = typed(*LAYERS, lines=["/stats"])
    assert ran.code == 1
    assert "! there is no command '/stats'. Did you mean '/status'?" in ran.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--system", "layers", "--toolset", "dual"), "--toolset is nothing that the layers memory has"),
        (("--memory-mode", "guest"), "--memory-mode is nothing that the topics memory has"),
        (("--system", "layers", "--memory-mode", "gust"), "mode is 'gust'; allowed: incognito, local"),
        (("--system", "layers", "--user-id", "a\x07"), "owner 'a\\x07' is not allowed"),
        (("--system", "layers", "--bus", "nats://h", "--store", "s"), "--store is decided by the processes that serve"),
        (("--system", "turns", "--bus", "nats://h"), "--bus is for topics and layers"),
        (("--bus", "nats://h", "--chat", "offline"), "--chat is decided by the processes that serve"),
        (("--bus", "127.0.0.1"), "'127.0.0.1' is not an address of a bus; allowed: nats://HOST:PORT"),
        (("--system", "layers", "--store", "postgresql://h/db?schema=A-B"), "schema 'A-B'"),
        (
            ("--system", "layers", "--store", "mysql://u:p@h/db"),
            "the store's URL begins with 'mysql://u'; allowed: post",
        ),
        (
            ("--system", "observations", "--store", "mysql://u:p@h/db"),
            "the store's URL begins with 'mysql://u'; allowed: post",
        ),
        (("--system", "pipeline", "--store", "mysql://u:p@h/db"), "the store's URL begins with 'mysql://u'"),
        (("--system", "layers", "--chat", "gpt"), "there is no chat model named 'gpt'"),
    ],
)
def test_what_does_not_fit_together_is_one_line_and_nothing_is_made(typed, tmp_path, options, said):
    ran = typed("chat", *options, lines=["hello"])
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_busy_store_is_one_line(typed):
    from memstory_reference.adapters.store_folder import FolderLock  # noqa: PLC0415

    typed(*LAYERS, lines=FACTS)
    lock = FolderLock(Path(".layers"))
    lock.acquire()
    try:
        ran = typed(*LAYERS, lines=[ASKED])
    finally:
        lock.release()
    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1


def test_settings_of_a_file_are_taken_and_wrong_ones_named(typed):
    Path("l.yaml").write_text("store: elsewhere\nembedding_model: none\nrule_cap: 5\n", "utf-8")
    assert "embedder none" in typed(*LAYERS, "--settings", "l.yaml").out
    assert Path("elsewhere").is_dir()
    for text, said in (
        ("rule_caps: 5", "Did you mean 'rule_cap'?"),
        ("rule_cap: 0", "rule_cap is 0"),
        ("store: 7", "store"),
    ):
        Path("l.yaml").write_text(text, "utf-8")
        ran = typed(*LAYERS, "--settings", "l.yaml")
        assert (ran.code, said in ran.err) == (1, True), ran.err


def test_a_person_lists_forgets_switches_and_rates_at_the_terminal(typed):
    said = [*FACTS, "What do you know about me?", "/forget", "/forget where I live", "/run recall on=false"]
    ran = typed(*LAYERS, lines=[*said, "/run recall", "/run nothing", "/run feedback label=helpful comment=Thanks"])
    assert "This is what I remember of you." in ran.out
    assert "Forgotten:" in ran.out
    assert "/forget: say what" in ran.out
    assert "recall: the argument 'on' is missing" in ran.out
    assert "this memory has no job 'nothing'; it has: archive, end, feedback" in ran.out
    assert '"id":' in ran.out.splitlines()[-2] + ran.out.splitlines()[-3]
    assert "label is 'fine'" in typed(*LAYERS, lines=["/run feedback label=fine"]).out
    known = typed(*LAYERS, lines=["/run recall on=true", "What do you know about me?"]).out
    assert "live in" not in known
