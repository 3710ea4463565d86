"""What `memstory-reference` says of itself."""

import re

import pytest

from memstory_reference.cli import COMMANDS, EXAMPLES, main, make_parser


def help_of(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"memstory-reference \d+\.\d+.*\n", capsys.readouterr().out)


@pytest.mark.parametrize("words", [[], *([name] for name in EXAMPLES)])
def test_help_ends_with_examples_and_exit_codes(words, capsys):
    said = help_of(words, capsys)
    assert "examples:\n  memstory" in said
    assert said.splitlines()[-1].startswith("exit codes: 0 fine, 1 ")


def test_every_command_has_examples_that_its_parser_takes():
    parser = make_parser()
    assert len(EXAMPLES) == len(COMMANDS)
    lines = [line.split("   ")[0].strip() for text in EXAMPLES.values() for line in text.strip("\n").split("\n")]
    for line in lines:
        words = re.findall(r"'[^']*'|\"[^\"]*\"|\S+", line)
        if words[0] == "memstory-reference":
            assert parser.parse_args([word.strip("'\"") for word in words[1:]]).command in COMMANDS
