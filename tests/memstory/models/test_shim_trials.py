"""A language model that is right four times of five, tried five times: what each report says of it."""

from memstory.contract.models import Reply, ToolRequest
from memstory.controls import OracleFactory
from memstory.language.stories import parse_stories
from memstory.models.shim import Chats
from memstory.playing import play
from memstory.reporting.markdown import as_markdown
from memstory.reporting.page.html import as_html
from memstory.reporting.sections.case_steps import case_steps
from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import run_document
from memstory.results.runs import make_fingerprint, make_run
from memstory.running.runner import RunOptions

STORY = """
story: TRY1
title: What was added is looked up before it is answered
trials: 5
steps:
  - add: Ana's boat is called Marlin.
  - say: What is Ana's boat called?
    expect:
      tool_calls: [search_memory]
      answer: {contains: Marlin}
"""


class MostlyRight:
    """Looks into the memory, but on every fifth question makes something up."""

    name = "openai:mostly-right"
    asked = 0

    async def chat(self, request):
        if request.messages[-1].role == "tool":
            return Reply(
                content=f"It is in your notes: {request.messages[-1].content}", prompt_tokens=40, answer_tokens=9
            )
        self.asked += 1
        if self.asked % 5 == 0:
            return Reply(content="Her boat is called Penelope.", prompt_tokens=20, answer_tokens=6)
        search = ToolRequest(name="search_memory", arguments={"query": "Ana's boat is called Marlin."})
        return Reply(content="", tool_requests=[search], prompt_tokens=20, answer_tokens=5)

    async def close(self):
        pass


class Backend(OracleFactory):
    """The perfect memory under a name of its own: controls get no shim."""

    name = "perfect"


async def test_the_rate_its_interval_and_the_chance_of_all_are_in_terminal_report_and_page(tmp_path):
    (story,) = parse_stories(STORY, "try.story.yaml")
    options = RunOptions(chats=Chats({"m": MostlyRight()}), target={"chat": "m"})
    result = await play(story, Backend(), tmp_path / "work", options=options)
    assert result.outcome == "failed", result.reason
    assert result.rate.passed, result.reason
    run = make_run([result], make_fingerprint([result]))
    said = "passed 4 of 5 trials (95% interval 0.38 to 0.96, pass^5 0.00)"
    assert f"flaky: TRY1[perfect] {said}" in terminal_summary(run)
    report = as_markdown(run_document(run))
    (row,) = [line for line in report.splitlines() if line.startswith("| TRY1\\[perfect\\]") and "flaky" in line]
    assert row.split("|")[3:9] == [" 4 of 5 ", " 0.80 ", " 0.38 to 0.96 ", " 1.00 ", " 0.60 ", " 0.00 "]
    assert "| TRY1 | 4 of 5 | 4 of 5 |" in report
    assert said in as_html(case_steps(result))
