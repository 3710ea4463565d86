"""Objects as targets: where they live, what they promise, what their methods are given and return."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, SetupError
from memstory.contract.target import Environment, Item, Query, Ref, Request, Scope, Target
from memstory.running.stage import open_stage
from memstory.targets.discovery import load_spec, load_targets
from memstory.targets.objects.target import ObjectFactory

ANN, BOB = Scope(user="ann"), Scope(user="bob")
TEA = "Ann drinks green tea."


class Memory:
    """As people write it: blocking, of one thread, with numbers as ids and None from what returns nothing."""

    def __init__(self, path="memory.db"):
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, user TEXT, text TEXT)")

    def add(self, text, user_id):
        with self.db:
            return self.db.execute("INSERT INTO notes (user, text) VALUES (?, ?)", (user_id, text)).lastrowid

    def search(self, query, user_id, limit=5):
        rows = self.db.execute("SELECT id, text FROM notes WHERE user = ? AND text LIKE ?", (user_id, f"%{query}%"))
        return [{"id": number, "text": text} for number, text in rows][:limit]

    def list(self, user_id):
        return self.db.execute("SELECT id, text FROM notes WHERE user = ?", (user_id,))

    def get(self, id):  # noqa: A002  (as people call it)
        return self.db.execute("SELECT id, text FROM notes WHERE id = ?", (id,)).fetchone()

    def update(self, id, text):  # noqa: A002
        with self.db:
            self.db.execute("UPDATE notes SET text = ? WHERE id = ?", (text, id))

    def delete(self, id):  # noqa: A002
        with self.db:
            self.db.execute("DELETE FROM notes WHERE id = ?", (id,))

    def close(self):
        self.db.close()


class Later:
    """All `async`, in memory, and it returns no ids."""

    def __init__(self, folder: Path):
        self.file = folder / "notes.json"
        self.notes = json.loads(self.file.read_text()) if self.file.exists() else {}

    async def remember(self, content, user):
        self.notes.setdefault(user, []).append(content)
        self.file.write_text(json.dumps(self.notes))

    async def recall(self, query, user):
        for number, text in enumerate(self.notes.get(user, [])):
            if query in text:
                yield {"id": f"{user}-{number}", "text": text}


def environment(folder, **options):
    return Environment(workspace=str(folder), owner="ann", options=options)


@asynccontextmanager
async def opened(factory, folder, **options):
    target = factory.target()
    await target.open(environment(folder, **options), StoryClock())
    try:
        yield target
    finally:
        await target.close()


def written(folder, name, text):
    (folder / f"{name}.py").write_text(text)
    return name


async def test_a_class_is_used_as_people_write_it(tmp_path):
    async with opened(ObjectFactory("m:Memory", Memory), tmp_path) as target:
        receipt = await target.add([Item(text=TEA), Item(text="Bread is out.")], ANN)
        first, second = [item.id for item in receipt.items]
        assert [hit.text for hit in await target.search(Query(text="tea"), ANN)] == [TEA]
        assert await target.search(Query(text="tea"), BOB) == []
        assert [hit.id for hit in await target.list(ANN)] == [first, second]
        await target.update(Ref(id=first), Item(text="Ann drinks coffee."), ANN)
        assert (await target.get(Ref(id=first), ANN)).text == "Ann drinks coffee."
        assert await target.delete(Ref(id=first), ANN) is True
        assert await target.get(Ref(id=first), ANN) is None


class MadeByInit(Memory):
    def __init__(self, path):
        self.path = path

    def init(self):
        super().__init__(self.path)


async def test_a_memory_that_wants_init_gets_it_before_its_first_use(tmp_path):
    async with opened(ObjectFactory("m:Memory", MadeByInit), tmp_path) as target:
        await target.add([Item(text=TEA)], ANN)
        assert [hit.text for hit in await target.list(ANN)] == [TEA]


async def test_an_unknown_id_is_told_as_one(tmp_path):
    async with opened(ObjectFactory("m:Memory", Memory), tmp_path) as target:
        await target.add([Item(text=TEA)], ANN)
        assert await target.get(Ref(id="no-such-id"), ANN) is None
        with pytest.raises(Refused, match="no-such-id"):
            await target.update(Ref(id="no-such-id"), Item(text="x"), ANN)


async def test_a_restart_makes_the_object_again_in_the_same_place(tmp_path):
    factory = ObjectFactory("m:Later", Later)
    async with opened(factory, tmp_path) as target:
        await target.add([Item(text=TEA)], ANN)
    async with opened(factory, tmp_path) as target:
        (hit,) = await target.search(Query(text="tea"), ANN)
    assert (hit.text, hit.id) == (TEA, "ann-0")
    assert (tmp_path / "folder" / "notes.json").is_file()


async def test_an_id_that_add_does_not_return_is_looked_up(tmp_path):
    async with opened(ObjectFactory("m:Later", Later), tmp_path) as target:
        receipt = await target.add([Item(text=TEA), Item(text="Bread is out.")], ANN)
    assert [item.id for item in receipt.items] == ["ann-0", "ann-1"]


async def test_all_of_a_user_is_deleted_one_after_the_other_where_no_method_does_it(tmp_path):
    async with opened(ObjectFactory("m:Memory", Memory), tmp_path) as target:
        await target.add([Item(text=TEA), Item(text="Bread is out.")], ANN)
        await target.add([Item(text="Bob rows.")], BOB)
        assert await target.delete(Ref(), ANN) is True
        assert (await target.list(ANN), len(await target.list(BOB))) == ([], 1)


class Wiped(Memory):
    def clear(self):
        raise AssertionError("it would delete what other users have")


async def test_nothing_is_deleted_for_a_user_who_was_not_named(tmp_path):
    async with opened(ObjectFactory("m:Wiped", Wiped), tmp_path) as target:
        await target.add([Item(text=TEA)], ANN)
        await target.delete(Ref(), ANN)
        assert await target.list(ANN) == []


def test_what_the_signatures_promise_is_declared():
    promised = ObjectFactory("m:Memory", Memory).capabilities({})
    assert {word for word in promised if not word.startswith("option.")} == {
        *("add", "add.verbatim", "search", "get.id", "list", "update", "delete", "delete.scope"),
        *("scope.user", "restart", "persistent"),
    }
    assert "option.path" in promised


def test_what_the_class_declares_is_taken_instead():
    class Modest(Memory):
        memstory_capabilities = ("add", "search")

    assert {"add", "search"} == {
        word for word in ObjectFactory("m:Modest", Modest).capabilities({}) if not word.startswith("option.")
    }
    Modest.memstory_capabilities = ("serch",)
    with pytest.raises(SetupError, match=r"m:Modest\.memstory_capabilities .*: serch"):
        ObjectFactory("m:Modest", Modest)


def test_metadata_and_sessions_are_promised_by_parameters():
    class Full:
        def add(self, messages, user_id, session_id=None, metadata=None): ...
        def search(self, query, user_id, session_id=None, filters=None): ...

    promised = ObjectFactory("m:Full", Full).capabilities({})
    assert promised >= {"add.metadata", "search.where", "scope.session"}
    assert not promised & {"add.verbatim", "persistent", "get.id"}


@pytest.mark.parametrize(
    ("parameter", "options", "kind"),
    [
        ("path", {}, "own"),
        ("data_dir='.'", {}, "own"),
        ("db_url='sqlite:///memory.db'", {}, "own"),
        ("path", {"path": "/srv/memory.db"}, "shared"),
        ("base_url='http://127.0.0.1:1'", {}, "shared"),
        ("url='http://127.0.0.1:1'", {}, "shared"),
        ("size=3", {}, "apart"),
        ("size=3", {"shared": "true"}, "shared"),
    ],
)
def test_the_constructor_says_where_an_object_lives(parameter, options, kind):
    exec(f"def __init__(self, {parameter}): ...", made := {})  # noqa: S102  (a parameter of a given name)
    factory = ObjectFactory("m:Memory", type("Placed", (Memory,), {"__init__": made["__init__"]}))
    assert (factory.shares(options), factory.isolates(options)) == (kind == "shared", kind == "apart")
    assert ("persistent" in factory.capabilities(options)) == (kind == "own")


async def test_a_shared_object_gets_users_that_nobody_else_has(tmp_path):
    place = tmp_path / "shared.db"
    factory = ObjectFactory("m:Memory", Memory)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        async with opened(factory, tmp_path / name, path=str(place)) as target:
            await target.add([Item(text=TEA)], ANN)
            assert len(await target.list(ANN)) == 1
    with sqlite3.connect(place) as database:
        users = [user for (user,) in database.execute("SELECT user FROM notes")]
    database.close()
    assert len(set(users)) == 2
    assert "ann" not in users


async def test_a_shared_object_without_users_is_not_used(tmp_path):
    class Lone:
        def __init__(self, host="127.0.0.1"): ...
        def add(self, text): ...
        def search(self, query): ...

    with pytest.raises(SetupError, match="shared by all cases"):
        async with opened(ObjectFactory("m:Lone", Lone), tmp_path):
            pass


async def test_a_constructor_that_takes_a_user_makes_an_object_for_each(tmp_path):
    class Own:
        def __init__(self, user_id, folder):
            self.texts = []

        def add(self, text):
            self.texts.append(text)

        def search(self, query):
            return self.texts

    factory = ObjectFactory("m:Own", Own)
    assert "scope.user" in factory.capabilities({})
    async with opened(factory, tmp_path) as target:
        await target.add([Item(text=TEA)], ANN)
        assert [hit.text for hit in await target.search(Query(text="tea"), ANN)] == [TEA]
        assert await target.search(Query(text="tea"), BOB) == []


async def test_a_constructor_that_needs_more_is_told_in_one_message(tmp_path):
    class Needy(Memory):
        def __init__(self, path, colour, size=3):
            super().__init__(path)

    with pytest.raises(SetupError, match=r"m:Needy cannot be made: nothing is known for 'colour'.*--target-option"):
        async with opened(ObjectFactory("m:Needy", Needy), tmp_path):
            pass
    async with opened(ObjectFactory("m:Needy", Needy), tmp_path, colour="green", size=4):
        pass


async def test_a_refusal_is_not_an_error_and_an_error_stays_what_it_is(tmp_path):
    class Strict(Memory):
        def add(self, text, user_id):
            if not text:
                raise ValueError("the text is empty")
            raise RuntimeError("the disk is gone")

    async with opened(ObjectFactory("m:Strict", Strict), tmp_path) as target:
        with pytest.raises(Refused, match="add: the text is empty"):
            await target.add([Item(text="")], ANN)
        with pytest.raises(RuntimeError, match="the disk is gone"):
            await target.add([Item(text=TEA)], ANN)


class _Pages(Memory):
    def list(self, user_id, limit=2):
        return [*super().list(user_id)][:limit]


class _RequiredPages(Memory):
    def list(self, user_id, limit):
        return [*super().list(user_id)][:limit]


class _TextPages(Memory):
    def list(self, user_id, *, limit="2"):
        return [*super().list(user_id)][: int(limit)]


class _ShortPages(Memory):
    refusal: type[Exception] = ValueError

    def list(self, user_id, limit=2):
        if limit > 100:
            raise self.refusal("limit has to be from 1 to 100")
        return [*super().list(user_id)][:limit]


class _ShortPagesOfAServer(_ShortPages):
    refusal = RuntimeError


class _TinyPages(Memory):
    def list(self, user_id, limit=12):
        if limit not in {12, 1}:
            raise ValueError("only pages of 12")
        return [*super().list(user_id)][:limit]


@pytest.mark.parametrize("made", [_Pages, _RequiredPages, _TextPages, _ShortPages, _ShortPagesOfAServer, _TinyPages])
async def test_a_list_is_of_all_where_the_object_gives_a_page_of_its_own_and_so_is_a_deletion(tmp_path, made):
    async with opened(ObjectFactory("m:Memory", made), tmp_path) as target:
        await target.add([Item(text=f"Ann has {number} cups.") for number in range(12)], ANN)
        assert len(await target.list(ANN)) == 12
        assert len(await target.list(ANN, limit=1)) == 1
        await target.delete(Ref(), ANN)
        assert await target.list(ANN) == []


async def test_a_list_that_fails_for_any_number_fails_with_what_it_says_of_its_own(tmp_path):
    class Broken(Memory):
        def list(self, user_id, limit=2):
            raise RuntimeError(f"no page of {limit}")

    async with opened(ObjectFactory("m:Broken", Broken), tmp_path) as target:
        with pytest.raises(RuntimeError, match="no page of 2"):
            await target.list(ANN)


async def test_a_list_that_was_whole_once_hides_no_later_error(tmp_path):
    class Failing(Memory):
        calls = 0

        def list(self, user_id, limit=2):
            self.calls += 1
            if self.calls == 2:
                raise RuntimeError("database is locked")
            return [*super().list(user_id)][:limit]

    async with opened(ObjectFactory("m:Failing", Failing), tmp_path) as target:
        await target.list(ANN)
        with pytest.raises(RuntimeError, match="database is locked"):
            await target.list(ANN)


@pytest.mark.parametrize("lists_sessions", [True, False])
async def test_a_session_is_deleted_alone_or_not_at_all(tmp_path, lists_sessions):
    class Sessions(Memory):
        def __init__(self, path="kept.db"):
            super().__init__(path)
            self.sessions = {}

        def add(self, text, user_id, session=None):
            one = super().add(text, user_id)
            self.sessions[one] = session
            return one

        def search(self, query, user_id, limit=5, session=None):
            return super().search(query, user_id, limit)

        def delete_all(self, user_id):
            for row in super().list(user_id):
                self.delete(row[0])

    class SessionLists(Sessions):
        def list(self, user_id, session=None):
            return [one for one in super().list(user_id) if session in (None, self.sessions[one[0]])]

    made = SessionLists if lists_sessions else Sessions
    async with opened(ObjectFactory(f"m:{made.__name__}", made), tmp_path) as target:
        for session in ("morning", "evening"):
            await target.add([Item(text=f"{TEA} in the {session}")], Scope(user="ann", session=session))
        morning = Scope(user="ann", session="morning")
        if lists_sessions:
            await target.delete(Ref(), morning)
            assert [hit.text for hit in await target.list(Scope(user="ann"))] == [f"{TEA} in the evening"]
        else:
            with pytest.raises(NotSupported, match="takes a session"):
                await target.delete(Ref(), morning)
            assert len(await target.list(Scope(user="ann"))) == 2


async def test_a_condition_that_no_parameter_takes_is_not_supported(tmp_path):
    async with opened(ObjectFactory("m:Memory", Memory), tmp_path) as target:
        with pytest.raises(NotSupported, match=r"search\.where"):
            await target.search(Query(text="tea", where={"page": 7}), ANN)


APART = """
from pathlib import Path

HOME = Path.home()


class Memory:
    def add(self, text):
        with open("notes.txt", "a") as file:
            file.write(text + "\\n")

    def search(self, query):
        return Path("notes.txt").read_text().splitlines() if Path("notes.txt").exists() else []

    def context(self, query):
        return f"{HOME} {Path.cwd()}"


memory = Memory()


def make() -> Memory:
    return Memory()
"""


@pytest.mark.parametrize("name", ["Memory", "memory", "make"])
async def test_an_object_without_a_place_lives_in_a_process_with_an_empty_folder(tmp_path, monkeypatch, name):
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = f"{written(tmp_path, f'apart_{name}_{os.getpid()}', APART)}:{name}"
    monkeypatch.chdir(tmp_path)
    stage = open_stage(environment(tmp_path / "case"), load_spec(spec), hosted=False)
    await stage.open()
    try:
        await stage.target.perform(Request.of(Target.add, [Item(text=TEA)], ANN))
        context = await stage.target.perform(Request.of(Target.context, Query(text="x"), ANN))
        await stage.reopen()
        found = await stage.target.perform(Request.of(Target.search, Query(text="tea"), ANN))
    finally:
        await stage.close()
    assert context == f"{tmp_path / 'case'} {tmp_path / 'case'}"
    assert [hit.text for hit in found] == [TEA]
    assert [path.name for path in tmp_path.glob("**/notes.txt")] == ["notes.txt"]
    assert not (tmp_path / "notes.txt").is_file()


@pytest.mark.parametrize(("declared", "imports"), [("[LIBRARY]", 1), ("[]", 2)])
async def test_what_a_module_preloads_is_imported_once_for_all_of_its_processes(
    tmp_path, monkeypatch, declared, imports
):
    monkeypatch.syspath_prepend(str(tmp_path))
    library = tmp_path / f"library_{imports}_{os.getpid()}"
    library.mkdir()
    (library / "__init__.py").touch()
    noted = f"with open({str(tmp_path / 'imports.txt')!r}, 'a') as file:\n    file.write(f'{{os.getpid()}}\\n')\n"
    (library / "part.py").write_text(f"import os\n\n{noted}")
    declaration = f"import {library.name}.part\nmemstory_preload = {declared.replace('LIBRARY', repr(library.name))}\n"
    spec = f"{written(tmp_path, f'preloading_{imports}_{os.getpid()}', declaration + APART)}:Memory"
    factory = load_spec(spec)
    for case in ("one", "two"):
        stage = open_stage(environment(tmp_path / case), factory, hosted=False)
        await stage.open()
        context = await stage.target.perform(Request.of(Target.context, Query(text="x"), ANN))
        await stage.close()
        assert context == f"{tmp_path / case} {tmp_path / case}"
    others = [line for line in (tmp_path / "imports.txt").read_text().split() if line != str(os.getpid())]
    assert len(others) == imports


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("'numpy'", "is 'numpy': write a list of names of packages"),
        ("[1]", "is [1]: write a list of names of packages"),
        ("7", "is 7: write a list of names of packages"),
        ("['numpi']", "names what .* does not import: numpi"),
    ],
)
def test_what_a_module_preloads_is_a_list_of_packages(tmp_path, monkeypatch, declared, said):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = written(tmp_path, f"misdeclared_{abs(hash(declared))}", f"memstory_preload = {declared}\n{APART}")
    with pytest.raises(SetupError, match=rf"{module}.memstory_preload {said.replace('[1]', '.1.')}"):
        load_spec(f"{module}:Memory")


def test_a_module_that_is_slow_to_import_is_told_what_to_preload(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = written(tmp_path, f"slow_{os.getpid()}", f"import time\ntime.sleep(0.3)\n{APART}")
    # A run loads what was typed once to check it, and again for the cases.
    for _ in range(2):
        assert f"Importing {module} took 0.3 s" in load_spec(f"{module}:Memory").remark({})
    other = written(tmp_path, f"quick_{os.getpid()}", APART)
    assert "Importing" not in load_spec(f"{other}:Memory").remark({})


def test_a_function_that_does_not_say_what_it_makes_is_called_once_or_told(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    functions = "def one():\n    return Memory()\n\n\ndef two(path):\n    return Memory()\n"
    module = written(tmp_path, f"functions_{os.getpid()}", f"{APART}\n\n{functions}")
    assert "add" in load_spec(f"{module}:one").capabilities({})
    with pytest.raises(SetupError, match=r"does not say what it returns.*def two\(path\) -> Memory"):
        load_spec(f"{module}:two")


def test_what_is_no_memory_is_told_with_the_methods_seen():
    with pytest.raises(SetupError, match=r"OrderedDict is no memstory.TargetFactory") as error:
        load_targets(["collections:OrderedDict"])
    assert "no method for add (add, remember, store, save …)" in str(error.value)
    assert "Write a class around it with add(text) and search(query), or an adapter: `memstory new target`" in str(
        error.value
    )
    assert "\n" not in str(error.value)


def test_a_run_says_what_is_used_and_where_it_lives():
    said = ObjectFactory("m:Wiped", Wiped).remark({})
    assert "(path)" in said
    assert "add(text, user_id), search(query, user_id, limit), get(id)" in said


def test_what_blocks_does_not_block_the_event_loop(tmp_path):
    class Slow(Memory):
        def search(self, query, user_id):
            return asyncio.get_running_loop()

    async def searched():
        async with opened(ObjectFactory("m:Slow", Slow), tmp_path) as target:
            await target.search(Query(text="tea"), ANN)

    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.run(searched())
