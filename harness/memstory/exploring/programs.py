"""Programs: operations on a memory as plain data, drawn from a seed by rules that are switched on and off."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from memstory.contract.values import Capability, Item, Json
from memstory.exploring import values

Op: TypeAlias = Literal[
    "add", "update", "delete", "delete all", "get", "list", "search", "context", "restart", "crash", "advance"
]
By: TypeAlias = Literal["id", "key", "about"]
OWNER: Final = "ana"
OTHER: Final = "ben"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A thing to remember, and the name by which its program speaks of it; `tags` say what is odd about it."""

    name: str
    item: Item
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One call, or several at once.

    `memos` are what an `add` remembers and the one with which an `update` replaces `memory`. `get`, `update` and
    `delete` name the memory `by` its id, its key or what it is about; a deletion can be about one `more`. `at_once`
    adds each memo in a call of its own, all at the same time, every second one for the user `second` if there is one;
    `elsewhere` does the operation in a second process. `where` has the conditions of a search. What is deleted as
    `durable` stays away. `advance` moves the clock by `seconds`.
    """

    op: Op
    user: str = OWNER
    session: str | None = None
    memos: tuple[Memo, ...] = ()
    memory: str = ""
    more: str = ""
    by: By = "id"
    text: str = ""
    where: tuple[tuple[str, Json], ...] = ()
    limit: int | None = None
    seconds: float = 0.0
    at_once: bool = False
    second: str | None = None
    elsewhere: bool = False
    durable: bool = False
    tags: frozenset[str] = frozenset()

    @property
    def all_tags(self) -> frozenset[str]:
        """What is odd about it and about what it remembers."""
        return self.tags.union(*(memo.tags for memo in self.memos))

    def owner_of(self, place: int) -> str:
        """Return whose the memo at a place is."""
        return self.second if self.second is not None and place % 2 else self.user


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Operations in order; `number` is its place in the draws of a seed."""

    number: int
    operations: tuple[Action, ...]

    @property
    def tags(self) -> frozenset[str]:
        """What is odd about any operation."""
        return frozenset().union(*(one.all_tags for one in self.operations))

    @property
    def users(self) -> frozenset[str]:
        """Whose memories it touches."""
        return frozenset(user for one in self.operations for user in (one.user, one.second) if user is not None)

    @property
    def needs_own_memory(self) -> bool:
        """Whether it cannot share an open memory with other programs: a user's name cannot be made its own."""
        return any(OWNER not in user.casefold() and user != OTHER for user in self.users)

    @property
    def needs_process(self) -> bool:
        """Whether the memory must run in a process that can be killed."""
        return any(one.op == "crash" for one in self.operations)


RULES: Final[Mapping[str, frozenset[Capability]]] = {
    "batch": frozenset(),
    "equal texts": frozenset({"list"}),
    "text": frozenset(),
    "metadata": frozenset({"add.metadata"}),
    "value": frozenset({"add.metadata"}),
    "nested": frozenset({"add.metadata", "add.metadata.lists"}),
    "name": frozenset({"add.metadata"}),
    "keys": frozenset({"add.key"}),
    "key": frozenset({"add.key"}),
    "same key": frozenset({"add.key"}),
    "two users": frozenset({"scope.user"}),
    "user": frozenset({"scope.user", "scope.names"}),
    "foreign": frozenset({"scope.user"}),
    "sessions": frozenset({"scope.session_all"}),
    "update": frozenset({"update"}),
    "update metadata": frozenset({"update", "add.metadata"}),
    "update about": frozenset({"update", "update.about"}),
    "delete": frozenset({"delete"}),
    "delete about": frozenset({"delete", "delete.about"}),
    "delete all": frozenset({"delete", "delete.scope"}),
    "durable": frozenset({"delete", "delete.durable"}),
    "restart": frozenset({"restart", "persistent"}),
    "crash": frozenset({"crash", "persistent"}),
    "elsewhere": frozenset({"other_process"}),
    "ttl": frozenset({"add.ttl", "clock"}),
    "where": frozenset({"add.metadata", "search.where"}),
    "context": frozenset({"context"}),
    "limits": frozenset(),
    "many": frozenset(),
    "at once": frozenset(),
    "again": frozenset(),
    "kinds": frozenset(),
}
"""What can be switched on, with the capabilities that a target needs for it."""
FEWEST_RULES, MOST_RULES = 2, 16
_SELDOM: Final = {"crash": 0.04, "elsewhere": 0.06, "many": 0.25, "at once": 0.4}
"""How often a rule that costs time is left on where it was drawn."""


def draw(seed: int, number: int, able: frozenset[Capability], barred: frozenset[str] = frozenset()) -> Program:
    """Return a program of what a target can do that is `able`: the same for the same arguments.

    `barred` are rules and tags that are left out.
    """
    rng = random.Random(f"{seed}/{number}")  # noqa: S311  (draws, not secrets)
    rules = [name for name, needs in RULES.items() if needs <= able and name not in barred]
    chosen = set(rng.sample(rules, min(len(rules), rng.randint(FEWEST_RULES, MOST_RULES))))
    chosen -= {name for name, share in _SELDOM.items() if rng.random() > share}
    if "add.turns" in able:
        # There a field of this name says in which session it was said.
        barred |= {"name:session"}
    drawing = _Drawing(rng=rng, able=able, rules=frozenset(chosen), barred=barred)
    return Program(number=number, operations=tuple(drawing.operations()))


def own_query(text: str) -> str:
    """Return what is asked to find a text again: the text itself, or the first words of a long one."""
    return text if len(text) <= _LONG else " ".join(text.split()[:_FIRST_WORDS])


_LONG: Final = 300
_FIRST_WORDS: Final = 12
_MANY_AT_ONCE: Final = (2, 5, 8, 17)
USUAL_LIMIT: Final = 10


@dataclass(slots=True, kw_only=True)
class _Known:
    """A memory of the program as the drawing remembers it."""

    memo: Memo
    user: str
    session: str | None


@dataclass(slots=True, kw_only=True)
class _Drawing:
    rng: random.Random
    able: frozenset[Capability]
    rules: frozenset[str]
    barred: frozenset[str]
    known: list[_Known] = field(default_factory=list)
    past: list[_Known] = field(default_factory=list)
    count: int = 0
    users: Sequence[str] = (OWNER,)
    user_tags: dict[str, str] = field(default_factory=lambda: {OTHER: "two users"})

    def operations(self) -> Iterator[Action]:
        """Yield what is done, and at the end a look at everything."""
        self._choose_users()
        moves: list[Callable[[], Iterator[Action]]] = [self._add, self._add, self._look]
        for rule, move in (
            ("update", self._update), ("delete", self._delete), ("delete all", self._delete_all),
            ("durable", self._return), ("restart", self._reopen), ("crash", self._reopen), ("ttl", self._pass_time),
            ("where", self._conditions), ("many", self._many), ("at once", self._at_once), ("again", self._again),
            ("foreign", self._foreign),
        ):  # fmt: skip
            if rule in self.rules:
                moves.append(move)
        for _ in range(self.rng.randint(2, 9)):
            yield from self.rng.choice(moves)()
        yield from self._audit()

    def _choose_users(self) -> None:
        users = [OWNER]
        if self.rules & {"two users", "foreign"}:
            users.append(OTHER)
        if odd := self._odd("user", values.ODD_USERS, 1.0):
            users.append(odd[1])
            self.user_tags[odd[1]] = odd[0]
        self.users = users

    def _odd(self, rule: str, table: Mapping[str, Any], share: float = 0.5) -> tuple[str, Any] | None:
        """Return a line of a table, in a share of the draws where its rule is on."""
        allowed = [(tag, one) for tag, one in table.items() if tag not in self.barred]
        return self.rng.choice(allowed) if allowed and rule in self.rules and self._happens(share) else None

    def _happens(self, share: float) -> bool:
        return self.rng.random() < share

    def _user(self) -> str:
        return self.rng.choice(self.users)

    def _session(self) -> str | None:
        return self.rng.choice(("monday", "tuesday")) if "sessions" in self.rules else None

    def _limit(self) -> int:
        return self.rng.choice(values.LIMITS) if "limits" in self.rules else USUAL_LIMIT

    def _action(self, op: Op, user: str, *tags: str, **more: Any) -> Action:
        """Return an operation with the tags that its user, its session and its process give it."""
        elsewhere = "elsewhere" in self.rules and not more.get("at_once") and self._happens(0.3)
        found = {
            self.user_tags.get(user, ""), "session" if more.get("session") else "", "elsewhere" if elsewhere else "",
            "limit" if "limits" in self.rules and more.get("limit") is not None else "", *tags,
        }  # fmt: skip
        return Action(op=op, user=user, elsewhere=elsewhere, tags=frozenset(found - {""}), **more)

    def _on(self, op: Op, one: _Known, *tags: str, by: By | None = None, **more: Any) -> Action:
        """Return an operation on one memory, by a name that it has."""
        by = by or self._by(one)
        user = more.pop("user", one.user)
        return self._action(op, user, *tags, f"by {by}", memory=one.memo.name, by=by, **more)

    def _by(self, one: _Known) -> By:
        return "key" if one.memo.item.key is not None and "get.key" in self.able and self._happens(0.5) else "id"

    def _add(self) -> Iterator[Action]:
        size = self.rng.choice(values.SIZES) if "batch" in self.rules and self._happens(0.4) else 1
        yield self._adding([self._memo() for _ in range(size)], self._user(), "batch" if size > 1 else "")

    def _adding(self, memos: Sequence[Memo], user: str, *tags: str, **more: Any) -> Action:
        action = self._action("add", user, *tags, session=self._session(), memos=tuple(memos), **more)
        for place, memo in enumerate(memos):
            owner, same = action.owner_of(place), memo.item.key
            if same is not None:
                self._forget([one for one in self.known if (one.user, one.memo.item.key) == (owner, same)])
            self.known.append(_Known(memo=memo, user=owner, session=action.session))
        return action

    def _forget(self, gone: Sequence[_Known]) -> None:
        self.known = [one for one in self.known if one not in gone]
        self.past += gone

    def _memo(self, text: str = "") -> Memo:
        self.count += 1
        tags: set[str] = set()
        wording = self.rng.choice(values.PLAIN_TEXTS)
        if not text and (odd := self._odd("text", values.ODD_TEXTS)):
            tags.add(odd[0])
            wording = odd[1]
        text = text or wording.replace("{n}", str(self.count + 100))
        if "equal texts" in self.rules and self.known and self._happens(0.3):
            text = self.rng.choice(self.known).memo.item.text
            tags = {"equal texts"}
        key = self._key(tags)
        # A key may name one text of each kind: no two things that are owed depend on one draw.
        kind = self.rng.choice(("fact", "recipe")) if "kinds" in self.rules and key is None else None
        ttl = self.rng.choice(values.SPANS) if "ttl" in self.rules and self._happens(0.5) else None
        tags |= {name for name, value in (("ttl", ttl), ("kind", kind)) if value}
        item = Item(text=text, key=key, kind=kind, metadata=self._metadata(tags), ttl=ttl)
        return Memo(name=f"m{self.count}", item=item, tags=frozenset(tags))

    def _key(self, tags: set[str]) -> str | None:
        if not self.rules & {"keys", "key", "same key"} or self._happens(0.3):
            return None
        tags.add("key")
        if "same key" in self.rules:
            tags.add("same key")
            return self.rng.choice(values.PLAIN_KEYS)
        if odd := self._odd("key", values.ODD_KEYS):
            tags.add(odd[0])
            return str(odd[1])
        return f"user.thing{self.count}"

    def _metadata(self, tags: set[str]) -> dict[str, Json]:
        if not self.rules & {"metadata", "value", "nested", "name"} or self._happens(0.3):
            return {}
        tags.add("metadata")
        found: dict[str, Json] = {}
        for _ in range(self.rng.randint(1, 3)):
            name = self.rng.choice(sorted(values.PLAIN_METADATA))
            value: Json = self.rng.choice(values.PLAIN_METADATA[name])
            if odd := self._odd("name", values.ODD_NAMES):
                tags.add(odd[0])
                name = odd[1]
            if odd := self._odd("value", values.ODD_VALUES) or self._odd("nested", values.NESTED_VALUES):
                tags.add(odd[0])
                value = odd[1]
            found[name] = value
        return found

    def _pick(self, *, past: bool = False) -> _Known | None:
        among = self.past if past else self.known
        return self.rng.choice(among) if among else None

    def _question(self, one: _Known) -> str:
        """Return what may find a memory: its text, of which a search must find it, or a word, of which none need."""
        text = one.memo.item.text
        return self.rng.choice(text.split()) if self._happens(0.2) else own_query(text)

    def _update(self) -> Iterator[Action]:
        if (one := self._pick()) is None:
            return
        for _ in range(self.rng.choice((1, 1, 1, 2, *values.REPEATS))):
            fresh = self._memo()
            metadata = fresh.item.metadata if "update metadata" in self.rules else {}
            item = Item(text=fresh.item.text, metadata=metadata)
            kept = [tag for tag in fresh.tags if tag.startswith("text:") or tag == "equal texts"]
            kept += [tag for tag in fresh.tags if metadata and tag.startswith(("metadata", "name:", "value:"))]
            by: By | None = "about" if "update about" in self.rules and self._happens(0.4) else None
            self.past.append(replace(one))
            yield self._on("update", one, "update", by=by, memos=(replace(fresh, item=item, tags=frozenset(kept)),))
            one.memo = replace(one.memo, item=replace(one.memo.item, text=item.text))

    def _delete(self) -> Iterator[Action]:
        for _ in range(self.rng.choice((1, 1, 1, *values.REPEATS))):
            if (one := self._pick()) is None:
                return
            by: By | None = "about" if "delete about" in self.rules and self._happens(0.4) else None
            durable = "durable" in self.rules and self._happens(0.7)
            other = self._pick() if by == "about" and self._happens(0.4) else None
            more = other.memo.name if other is not None and other.user == one.user and other is not one else ""
            self._forget([one, *([other] if other is not None and more else [])])
            tags = ("delete", "durable" if durable else "", "two things" if more else "")
            deleting = self._on("delete", one, *tags, by=by, durable=durable, more=more)
            yield deleting
            if self._happens(0.2):
                yield deleting

    def _return(self) -> Iterator[Action]:
        """Delete something, if nothing is yet, and add its text again, as a source would."""
        if not self.past:
            yield from self._delete()
        if (one := self._pick(past=True)) is not None:
            memo = self._memo(one.memo.item.text)
            yield self._adding([replace(memo, tags=memo.tags | {"return"})], one.user)

    def _delete_all(self) -> Iterator[Action]:
        user = self._user()
        session = self._session() if self._happens(0.5) else None
        self._forget([one for one in self.known if one.user == user and session in (None, one.session)])
        yield self._action("delete all", user, "delete all", session=session)

    def _reopen(self) -> Iterator[Action]:
        op: Op = "crash" if "crash" in self.rules and ("restart" not in self.rules or self._happens(0.3)) else "restart"
        yield Action(op=op, tags=frozenset({op}))

    def _pass_time(self) -> Iterator[Action]:
        span = self.rng.choice(values.SPANS)
        yield Action(op="advance", seconds=span + self.rng.choice((-1.0, 1.0)), tags=frozenset({"time"}))
        yield from self._look()

    def _conditions(self) -> Iterator[Action]:
        """Add memories of which one half of a pair of values must be told from the other; search with conditions."""
        twins = {tag: pair for tag, pair in values.TWINS.items() if tag not in self.barred}
        twins |= values.NESTED_TWINS if "add.metadata.lists" in self.able else {}
        tag, user = self.rng.choice(sorted(twins)), self._user()
        one, other = self.rng.sample(twins[tag], 2)
        # Those that do not fit may be more than anybody looks at before the conditions are.
        others = self.rng.choice(values.SIZES) if self._happens(0.5) else 1
        rows: list[dict[str, Json]] = [
            *({"state": one, "floor": 1}, {"state": one, "floor": 2}, {}), *[{"state": other, "floor": 1}] * others,
        ]  # fmt: skip
        self.rng.shuffle(rows)
        memos = []
        for row in rows:
            memo = self._memo()
            tags = {kept for kept in memo.tags if not kept.startswith(("name:", "value:", "metadata"))}
            memos.append(replace(memo, item=replace(memo.item, metadata=row), tags=frozenset({*tags, "metadata"})))
        yield self._adding(memos, user, "batch")
        yield from (move for chance in (0.3, 0.3) if self._happens(chance) for move in self._change())
        second = self._happens(0.5)
        where: tuple[tuple[str, Json], ...] = (("state", one), *([("floor", 1)] if second else []))
        tags = {"where", tag, *(["two conditions"] if second else [])}
        yield self._action("search", user, *tags, text=values.COMMON_WORD, where=where, limit=self._limit())

    def _change(self) -> Iterator[Action]:
        """Yield what may happen between a writing and a look."""
        moves = {"update": self._update, "delete": self._delete, "restart": self._reopen}
        allowed = [move for rule, move in moves.items() if rule in self.rules]
        yield from self.rng.choice(allowed)() if allowed else ()

    def _many(self) -> Iterator[Action]:
        size = self.rng.choice(values.HUGE_SIZES if self._happens(0.08) else values.LARGE_SIZES)
        user = self._user()
        memos = []
        for _ in range(size):
            self.count += 1
            memos.append(Memo(name=f"m{self.count}", item=Item(text=f"Note {self.count + 100}: a jar of plums.")))
        yield self._adding(memos, user, "many")
        if "delete" in self.rules and self._happens(0.3):
            few = self.rng.choice(values.SIZES if self._happens(0.7) else values.LARGE_SIZES)
            gone = [one for one in self.known if one.memo in memos[:few]]
            yield from (self._on("delete", one, "delete") for one in gone)
            self._forget(gone)
        yield self._listing(user, None)

    def _at_once(self) -> Iterator[Action]:
        user, second = self._user(), self._user() if self._happens(0.5) else None
        second = None if second == user else second
        memos = []
        for _ in range(self.rng.choice(_MANY_AT_ONCE)):
            self.count += 1
            memos.append(Memo(name=f"m{self.count}", item=Item(text=f"Note {self.count + 100}: written at once.")))
        more = "two users" if second else ""
        yield self._adding(memos, user, "at once", more, at_once=True, second=second)
        yield self._listing(user, None)

    def _again(self) -> Iterator[Action]:
        look = list(self._look())
        for _ in range(self.rng.choice(values.REPEATS)):
            yield from (replace(one, tags=one.tags | {"again"}) for one in look)

    def _foreign(self) -> Iterator[Action]:
        one = self._pick()
        others = [user for user in self.users if one is None or user != one.user]
        if one is None or not others:
            return
        user, tag = self.rng.choice(others), "of another"
        text = self._question(one)
        moves = [self._action("search", user, tag, text=text, limit=USUAL_LIMIT)]
        if "context" in self.able:
            moves.append(self._action("context", user, tag, text=text))
        if "get.id" in self.able:
            moves.append(self._on("get", one, tag, by="id", user=user))
        if "get.key" in self.able and one.memo.item.key is not None:
            moves.append(self._on("get", one, tag, by="key", user=user))
        if "delete" in self.able:
            by: By = "about" if "delete about" in self.rules else self._by(one)
            moves.append(self._on("delete", one, tag, "delete", by=by, user=user))
        if "update" in self.able:
            by = "about" if "update about" in self.rules else "id"
            memo = self._memo(f"Note {self.count + 101}: written by another.")
            memo = replace(memo, item=Item(text=memo.item.text), tags=frozenset())
            moves.append(self._on("update", one, tag, "update", by=by, user=user, memos=(memo,)))
        yield self.rng.choice(moves)

    def _listing(self, user: str, session: str | None, limit: int | None = None) -> Action:
        if "list" in self.able:
            return self._action("list", user, session=session, limit=limit)
        text, limit = values.COMMON_WORD, 100 if limit is None else limit
        return self._action("search", user, session=session, text=text, limit=limit)

    def _look(self) -> Iterator[Action]:
        one = self._pick(past=bool(self.past) and self._happens(0.4))
        session = self._session() if self._happens(0.5) else None
        if one is None or self._happens(0.3):
            yield self._listing(self._user(), session, self._limit() if "limits" in self.rules else None)
            return
        kind, by = self.rng.choice(("search", "get", "common")), self._by(one)
        if kind == "get" and f"get.{by}" in self.able:
            yield self._on("get", one, by=by)
            return
        text = values.COMMON_WORD if kind == "common" else self._question(one)
        if "context" in self.rules and self._happens(0.5):
            yield self._action("context", one.user, "context", text=text, session=session)
            return
        yield self._action("search", one.user, text=text, limit=self._limit(), session=session)

    def _audit(self) -> Iterator[Action]:
        yield from self._foreign()
        yield from (self._listing(user, None) for user in self.users)
        if "sessions" in self.rules:
            yield self._listing(OWNER, self._session())
        for one in self.rng.sample(self.known, min(4, len(self.known))):
            yield from self._lookups(one)
        for one in self.rng.sample(self.past, min(3, len(self.past))):
            yield from self._lookups(one)

    def _lookups(self, one: _Known) -> Iterator[Action]:
        if "get.id" in self.able:
            yield self._on("get", one, by="id")
        if "get.key" in self.able and one.memo.item.key is not None:
            yield self._on("get", one, by="key")
        text = self._question(one)
        yield self._action("search", one.user, text=text, limit=USUAL_LIMIT)
        if "context" in self.rules:
            yield self._action("context", one.user, "context", text=text)
