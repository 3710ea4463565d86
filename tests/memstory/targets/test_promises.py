"""What a run says at its end of a target that was probed."""

from memstory.targets.promises import ProbeFindings, PromisingFactory


def test_what_there_was_no_time_for_is_named_with_the_command_that_tries_it():
    factory = PromisingFactory()
    factory.findings = ProbeFindings(holds=["add.exact"], not_reached=["scope.user", "search.scores"])
    said = factory.findings_remark("it maps", "notes")
    assert "it has add.exact." in said
    assert "No time was left to try scope.user, search.scores, whose stories did not run" in said
    assert "`memstory probe notes`" in said
    factory.findings = ProbeFindings()
    assert factory.findings_remark("it maps", "notes") == (
        "Probed: beside what it maps it has nothing (`memstory probe notes`)."
    )
