import tomllib

import pytest
from jsonschema import Draft202012Validator

from memstory.contract.errors import SetupError
from memstory.targets.discovery import bundled_tables, load_targets, read_tables
from memstory.targets.tables.reading import parse_table, schema
from memstory.targets.tables.table import capabilities_of

GOOD = """
[targets.mine]
type = "mcp"
command = ["serve"]
[targets.mine.add]
tool = "remember"
args = { text = "{text}", user = "{user}" }
[targets.mine.search]
tool = "recall"
args = { query = "{query}", limit = "{top_k}", user = "{user}" }
reply = { at = "hits", id = "id", text = "text", score = "score" }
scores = "similarity"
"""


def parsed(toml):
    ((name, table),) = tomllib.loads(toml)["targets"].items()
    return parse_table(name, table, "memstory.toml")


def test_a_table_says_what_it_can_do():
    assert capabilities_of(parsed(GOOD)) == {"add", "add.verbatim", "search", "search.scores", "scope.user"}


def test_a_table_takes_away_and_adds():
    head = 'command = ["serve"]\ncapabilities = ["persistent"]\nlacks = ["scope.user"]'
    able = capabilities_of(parsed(GOOD.replace('command = ["serve"]', head)))
    assert able == {"add", "add.verbatim", "search", "search.scores", "persistent"}


def test_users_are_not_apart_where_a_search_forgets_them():
    assert "scope.user" not in capabilities_of(parsed(GOOD.replace('{top_k}", user = "{user}" }', '{top_k}" }')))


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('tool = "recall"', 'tol = "recall"', r"\[targets\.mine\.search\] unknown key 'tol'\. Did you mean 'tool'\?"),
        (
            "[targets.mine.search]",
            "[targets.mine.serch]",
            r"\[targets\.mine\] unknown key 'serch'\. Did you mean 'search'\?",
        ),
        ('"mcp"', '"mpc"', r"\[targets\.mine\] type = \"mpc\"\. Did you mean 'mcp'\?"),
        ('type = "mcp"', "", r"\[targets\.mine\] there is no 'type'"),
        ('command = ["serve"]', "", r"\[targets\.mine\] wants exactly one of 'command' or 'url'"),
        ('command = ["serve"]', "command = []", r"\[targets\.mine\] 'command' must not be empty"),
        ('command = ["serve"]', 'command = "serve"', r"'command' wants a value of type array; found \"serve\""),
        (
            '"{query}"',
            '"{qery}"',
            r"\[targets\.mine\.search\] 'args' unknown placeholder \{qery\}\. Did you mean 'query'\?",
        ),
        ('"{query}"', '"{query"', r"\[targets\.mine\.search\] 'args' has a lone '\{'"),
        ('"hits"', '"hits["', r"\[targets\.mine\.search\.reply\] 'at': 'hits\[' is not a path"),
        (
            'scores = "similarity"',
            'scores = "nearness"',
            r"'scores' is one of similarity, distance; found \"nearness\"",
        ),
        ('scores = "similarity"', "", r"\[targets\.mine\.search\] reads a score, but 'scores' does not say what it is"),
        (
            'scores = "similarity"',
            'scores = "similarity"\nmissing = "("',
            r"'missing': '\(' is not a valid regular expression",
        ),
        ('scores = "similarity"', 'scores = "similarity"\nmissing = "[[a]"', "expression: Possible nested set"),
        ('scores = "similarity"', 'scores = "similarity"\nlook_up = true', "there is no \\[targets.mine.get\\]"),
        ('tool = "remember"', "", r"\[targets\.mine\.add\] wants exactly one of 'tool' or 'calls'"),
        ('command = ["serve"]', 'command = ["serve"]\ncapabilities = ["telepathy"]', "unknown word 'telepathy'"),
        ('at = "hits", id = "id", text = "text", score = "score"', 'at = "hits"', "reads nothing"),
        ('id = "id", text = "text"', 'id = "id"', r"\[targets\.mine\.search\.reply\] does not say where the 'text' is"),
        ('command = ["serve"]', 'command = ["serve", "{usr}"]', r"'command' unknown placeholder \{usr\}"),
    ],
)
def test_a_mistake_is_told_with_file_table_and_key(was, now, message):
    assert was in GOOD
    with pytest.raises(SetupError, match=message) as told:
        parsed(GOOD.replace(was, now, 1))
    assert str(told.value).startswith("memstory.toml: [targets.mine")


def test_every_mistake_of_a_table_is_told_at_once():
    with pytest.raises(SetupError) as told:
        parsed(
            GOOD.replace('tool = "recall"', 'tol = "recall"').replace('tool = "remember"', 'tool = "remember"\nx = 1')
        )
    assert [name for name in ("'tol'", "'x'") if f"unknown key {name}" not in str(told.value)] == []


def test_an_operation_about_one_memory_cannot_take_many():
    table = GOOD + '[targets.mine.delete]\ntool = "forget"\nargs = { ids = { each = "{id}" } }'
    with pytest.raises(SetupError, match="'each', which only 'add' can have"):
        parsed(table)


def test_what_an_earlier_call_saved_can_be_used_by_the_later_ones_only():
    first = '{ tool = "a", args = { x = "{old}" }, save = { old = "id" } }'
    second = '{ tool = "b", args = { x = "{old}" } }'
    table = '[targets.mine]\ntype = "mcp"\ncommand = ["serve"]\n[targets.mine.add]\ncalls = [%s, %s]'
    with pytest.raises(SetupError, match=r"add\.calls\[0\]\] 'args' unknown placeholder \{old\}"):
        parsed(table % (first, second))
    assert parsed(table % (first.replace("{old}", "{text}"), second)).operations["add"].calls[1].names == {"old"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[targets", "this is not TOML"),
        ("[target.x]", r"unknown table \[target\]\. Allowed: \[targets\.NAME\]"),
        ("targets = 5", "'targets' is not a table"),
        ("[targets]\nx = 5", r"\[targets\] 'x' is not a table"),
    ],
)
def test_a_file_that_holds_no_tables_says_what_is_wrong(tmp_path, text, message):
    (tmp_path / "memstory.toml").write_text(text)
    with pytest.raises(SetupError, match=f"^memstory.toml: {message}"):
        read_tables(tmp_path / "memstory.toml")


def test_no_file_is_no_table(tmp_path):
    assert read_tables(tmp_path / "memstory.toml") == {}


def test_the_schema_is_one():
    Draft202012Validator.check_schema(schema())


def test_every_table_that_comes_along_is_right_and_named_after_its_file():
    assert bundled_tables()
    for name, spec in bundled_tables().items():
        path = spec.partition("#")[0]
        with open(path, "rb") as file:  # noqa: PTH123  (the spec is a text)
            tables = tomllib.load(file)["targets"]
        assert list(tables) == [name]
        if "target" in tables[name]:  # a library by other options, of which no operation is said
            assert load_targets([name])[name].capabilities({}) >= {"add", "search"}
            continue
        assert {"add", "search"} <= set(parse_table(name, tables[name], "tables").operations)
