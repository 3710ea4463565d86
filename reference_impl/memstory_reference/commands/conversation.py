"""A conversation at the terminal with any memory: a line is a turn, a line with a slash is about the memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memstory.contract.target import Query, Scope, Turn
from memstory.contract.texts import did_you_mean
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.desk import forget_meant
from memstory_reference.commands.memory import job_arguments
from memstory_reference.commands.memory_rows import Row, is_named, row_name, row_of, row_table
from memstory_reference.commands.terminal import Speech, json_text
from memstory_reference.errors import InputError
from memstory_reference.system_memory import SystemMemory

Say = Callable[[str, Scope], Awaitable[Turn]]
"""Takes a turn."""

SHUTDOWN, EXPLICIT = "shutdown", "explicit"


class ConversationEnd(Exception):  # noqa: N818  (not an error)
    """The conversation was ended by a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """What can be typed behind a slash; `needs` is the operation without which the memory does not have it."""

    usage: str
    help: str
    act: Callable[[str], Awaitable[None]]
    needs: str | None = None


@dataclass(kw_only=True)
class Conversation:
    """One owner's talk with a memory; errors of the memory or the model are the caller's to show."""

    memory: SystemMemory
    say: Say
    speech: Speech
    scope: Scope
    _said: str = ""

    async def hear(self, line: str) -> None:
        """Do what was typed; raise `ConversationEnd` if it was to end."""
        typed = line.strip()
        if typed.startswith("/"):
            name, _, argument = typed.partition(" ")
            await self._command(name).act(argument.strip())
        elif typed:
            await self._turn(typed)

    async def leave(self) -> None:
        """End the session with the conversation, where sessions end."""
        if "job.end" in self.memory.capabilities():
            await self._end(SHUTDOWN)

    async def _turn(self, said: str) -> None:
        turn = await self.say(said, self.scope)
        self._said = said
        self.speech.answer(turn.answer)
        for note in turn.notes:
            self.speech.aside(f"! {note}")
        # While the next line is awaited nothing runs here, and the next turn may ask for this one.
        await self.memory.settle()

    def commands(self) -> Mapping[str, Command]:
        """Return what can be typed behind a slash, by name, as far as the memory can do it."""
        every = (
            Command("/list [KIND]", "what is remembered, of one kind or of all", self._list, "list"),
            Command("/search TEXT", "what is remembered, by meaning", self._search, "search"),
            Command(
                "/forget WHAT", "delete a memory and what repeats it, by its name, id or the words for it", self._forget
            ),
            Command(
                "/context [TEXT]",
                "what the memory puts before a model, for a text or the last turn",
                self._context,
                "context",
            ),
            Command("/status", "how much is remembered, and how", self._status, "inspect.status"),
            Command("/good", "rate the last answer: found before others", self._rate(1), "job.rate"),
            Command("/bad", "rate it: found after others", self._rate(-1), "job.rate"),
            Command("/run JOB NAME=VALUE", f"a job of the memory: {self._jobs()}", self._run),
            Command(
                "/end",
                "end the session: what it left open is settled, and the next line begins another",
                lambda _: self._end(EXPLICIT),
                "job.end",
            ),
            Command(
                "/new", "start a new session: the memory stays, the conversation so far is out of sight", self._new
            ),
            Command("/help", "these lines", self._help),
            Command("/quit", "end, as Ctrl-D does; Ctrl-C stops an answer", self._quit),
        )
        able = self.memory.capabilities()
        return {one.usage.split()[0]: one for one in every if one.needs is None or one.needs in able}

    def _command(self, name: str) -> Command:
        commands = self.commands()
        if name not in commands:
            raise InputError(
                f"there is no command {name!r:.40}.{did_you_mean(name, commands)} There are: {', '.join(commands)}"
            )
        return commands[name]

    async def _list(self, kind: str) -> None:
        found = await self.memory.list(self._owner, [kind] if kind else [])
        self._show([row_of(self.scope.user, one) for one in found], "Nothing is remembered.")

    async def _search(self, text: str) -> None:
        if not text:
            raise InputError("/search: say what to look for, such as '/search where I live'")
        found = await self.memory.search(Query(text=text), self._owner)
        self._show([row_of(self.scope.user, one) for one in found], "No memories found.")

    async def _forget(self, what: str) -> None:
        if not what:
            raise InputError("/forget: say what: a name or an id as /list shows it, or words such as '/forget my name'")
        if "job.forget" in self.memory.capabilities():
            # Such a memory knows words and ids, and says itself what it did.
            self.speech.aside(await self.memory.run("forget", {"what": what}, self.scope))
            return
        done = await forget_meant(self.memory, what, self._owner)
        gone = [row_of(self.scope.user, hit) for hit in done.gone]
        # By its name a fact can be told again; of what has none the first stands for all.
        named = dict.fromkeys(row_name(row) for row in gone if is_named(row))
        names = [*named] or [row_name(row) for row in gone][:1]
        more = f", and {len(gone) - len(names)} more that say it" if len(gone) > len(names) else ""
        self.speech.aside(f"Forgotten: {', '.join(names)}{more}." if gone else "Nothing was forgotten.")
        if done.mentions:
            self.speech.aside("These mention it too; /forget with an id forgets one:")
            self._show([row_of(self.scope.user, hit) for hit in done.mentions], "")

    async def _context(self, text: str) -> None:
        asked = text or self._said
        if not asked:
            raise InputError("/context: nothing has been said yet; give a text")
        context = await self.memory.context(Query(text=asked), self.scope)
        self.speech.aside(context or "Nothing is remembered for it.")

    async def _status(self, _: str) -> None:
        self.speech.aside(self.memory.status_line(await self.memory.inspect("status", {}, self.scope)))

    def _rate(self, value: int) -> Callable[[str], Awaitable[None]]:
        async def rate(_: str) -> None:
            is_kept = await self.memory.run("rate", {"value": value}, self.scope)
            self.speech.aside("Rated." if is_kept else "That turn is not remembered, so there is nothing to rate.")

        return rate

    async def _run(self, typed: str) -> None:
        if not typed:
            raise InputError(f"/run: say which job: {self._jobs()}")
        job, *arguments = typed.split(" ")
        report = await self.memory.run(job, job_arguments([one for one in arguments if one]), self.scope)
        self.speech.aside("Done." if report is None else json_text(report, indent=2))

    async def _end(self, reason: str) -> None:
        report = await self.memory.run("end", {"reason": reason}, self.scope)
        if report["ended"]:
            kept = "its summary is kept" if report["summary"] else "it was too short for a summary"
            self.speech.aside(f"The session is ended: {kept}. Held memories that are kept now: {report['kept']}.")
        elif report["waiting"]:
            turns = f"{report['waiting']} turn{'s' if report['waiting'] > 1 else ''}"
            self.speech.aside(
                f"! The session is not ended: the model is not there to read {turns}. They are kept and wait for it."
            )
        elif reason == EXPLICIT:
            self.speech.aside("There is no session to end.")

    async def _new(self, _: str) -> None:
        self.scope = replace(self.scope, session=random_id())
        self.speech.aside("A new session.")

    async def _help(self, _: str) -> None:
        commands = self.commands().values()
        width = max(len(one.usage) for one in commands)
        self.speech.aside("\n".join(f"{one.usage:{width}}  {one.help}" for one in commands))

    async def _quit(self, _: str) -> None:
        raise ConversationEnd

    def _jobs(self) -> str:
        own = (one.removeprefix("job.") for one in self.memory.capabilities() if one.startswith("job."))
        return ", ".join(sorted(own)) or "none"

    @property
    def _owner(self) -> Scope:
        """The scope of all of the owner's sessions; of nobody's it is the session itself."""
        return replace(self.scope, session=None) if self.scope.user else self.scope

    def _show(self, rows: Sequence[Row], for_none: str) -> None:
        self.speech.aside(row_table(rows) if rows else for_none)
