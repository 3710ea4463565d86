"""What a memory offers to its user beside searching: context, ratings, tools, looks inside."""

from __future__ import annotations

from memstory.conformance.samples import ANN, HARBOUR, anywhere, claim
from memstory.conformance.under_test import UnderTest, declares, shows
from memstory.contract.codec import encode
from memstory.contract.errors import NotSupported, Refused, StoryError
from memstory.contract.target import Query, Ref
from memstory.language.json_schemas import faulty_schemas


class Offers(UnderTest):
    """Tests of `context`, `feedback`, `tool`, `tools` and `inspect`."""

    @shows("context", given=["add"])
    async def test_the_context_has_what_was_added(self) -> None:
        """Where it is asked about just that."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR)
            context = await target.context(Query(text=HARBOUR), anywhere(ANN))
        claim(HARBOUR in context, f"'context' is declared; with one memory, the context for its text is {context!r}")

    @shows("feedback", given=["add"])
    async def test_a_known_memory_can_be_rated(self) -> None:
        """And an unknown one cannot."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR)
            claim(await target.feedback(Ref(id=ids[0]), 1.0, anywhere(ANN)), "a rating of a known id must return True")
            unknown = await target.feedback(Ref(id="no-such-id"), 1.0, anywhere(ANN))
            claim(not unknown, "a rating of an unknown id must return False")

    @shows("tool")
    async def test_an_unknown_tool_is_an_error_in_the_result(self) -> None:
        """As an agent gets it that errs."""
        async with self._opened() as target:
            called = await target.tool("no_such_tool", {}, ANN)
        claim(bool(called.error), f"a call of an unknown tool has no error: {called!r:.200}")

    @shows("tool.schema")
    async def test_the_tools_are_announced_with_their_schemas(self) -> None:
        """At least one, each with a JSON Schema."""
        async with self._opened() as target:
            announced = await target.tools()
        claim(bool(announced), "'tool.schema' is declared, but no tool is announced")
        faults = [*faulty_schemas(encode(announced))]
        claim(not faults, "; ".join(faults))

    @shows("inspect.")
    async def test_what_can_be_looked_at_answers(self) -> None:
        """Or says which arguments it has to be given."""
        missing = []
        async with self._opened() as target:
            for word in sorted(one for one in self._able if declares(one, "inspect.")):
                try:
                    await target.inspect(word.partition(".")[2], {}, anywhere(ANN))
                except (Refused, StoryError):
                    continue
                except NotSupported:
                    missing.append(word)
        claim(not missing, f"declared, but not supported: {', '.join(missing)}")
