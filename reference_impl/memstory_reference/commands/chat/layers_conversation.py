"""A conversation with the layers memory: what is typed is a turn, what starts with a slash is about the memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memstory_reference.commands.chat.talk import Command, Conversation
from memstory_reference.commands.memory.layers_desk import status_line
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.process import LayersTalk
from memstory_reference.systems.layers.turns.session_end import EndReason


@dataclass(kw_only=True)
class LayersConversation(Conversation):
    """Lines of a terminal as turns."""

    help = """\
/status            how much is remembered, and how
/context           what the last turn got from the memory
/known             what is remembered of you
/forget WHAT       forget what words or an id name, in summaries and this session too
/recall on|off     use memories in answers, or only keep them
/feedback LABEL    helpful, neutral, unhelpful or harmful, and a comment if you like
/end               end the session: what it held is settled, and the next line begins another
/quit              end, as Ctrl-D does; Ctrl-C stops an answer"""

    talk: LayersTalk
    _context: str = ""

    async def turn(self, said: str) -> None:
        answer = await self.talk.turn(said)
        self._context = answer.context
        self.speech.answer(answer.answer)
        for part, trouble in answer.trouble.items():
            self.speech.aside(f"! {part}: {trouble.get('error', trouble)}")
        # While the next line is awaited nothing runs here, and the next turn may ask for this one.
        await self.talk.settle(answer)

    async def leave(self) -> None:
        """End the session with the conversation."""
        await self._end(EndReason.SHUTDOWN)

    def commands(self) -> Mapping[str, Command]:
        return {
            "/status": self._status,
            "/context": self._show_context,
            "/known": self._known,
            "/forget": self._forget,
            "/recall": self._recall,
            "/feedback": self._feedback,
            "/end": self._end_session,
        }

    async def _status(self, _: str) -> None:
        self.speech.aside(status_line(await self.talk.status()))

    async def _show_context(self, _: str) -> None:
        self.speech.aside(self._context or "Nothing was remembered for the last turn.")

    async def _known(self, _: str) -> None:
        await self.turn("What do you know about me?")

    async def _forget(self, what: str) -> None:
        if not what:
            raise InputError("/forget: say what, such as '/forget my name', or an id")
        self.speech.aside(await self.talk.forget(what))

    async def _recall(self, switch: str) -> None:
        if switch not in ("on", "off"):
            raise InputError("/recall: say on or off")
        await self.talk.recall(on=switch == "on")
        self.speech.aside(
            "Memories are used in answers." if switch == "on" else "Memories are kept, and not used in answers."
        )

    async def _feedback(self, given: str) -> None:
        label, _, comment = given.partition(" ")
        await self.talk.feedback(label, comment.strip())
        self.speech.aside("Thank you; it is kept apart from your memories.")

    async def _end_session(self, _: str) -> None:
        if not await self._end(EndReason.EXPLICIT):
            self.speech.aside("There is no session to end.")

    async def _end(self, reason: EndReason) -> bool:
        report = await self.talk.end(reason)
        if report is None:
            return False
        kept = "its summary is kept" if report["arc"] else "it was too short for a summary"
        self.speech.aside(f"The session is ended: {kept}. Held memories that are kept now: {len(report['promoted'])}.")
        return True
