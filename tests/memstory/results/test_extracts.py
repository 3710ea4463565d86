from memstory.results.extracts import without_steps


def test_the_times_of_all_steps_stay(make_case):
    (trial,) = without_steps(make_case()).trials
    (time,) = trial.times
    assert (time.path, time.op, time.seconds) == ((0,), "say", 0.125)
    assert (trial.recording.steps, trial.recording.tools) == ((), ())


def test_of_a_trial_that_failed_it_is_kept_what_the_agent_did(make_case):
    (trial,) = without_steps(make_case(outcome="failed")).trials
    (did,) = trial.agent
    assert (did.said, did.turn.answer) == ("What language do I prefer?", "Your language is Elixir.")
    assert [(call.name, call.result) for call in did.turn.tool_calls] == [("memory_recall", "Elixir")]


def test_of_a_trial_that_passed_it_is_not(make_case):
    (trial,) = without_steps(make_case()).trials
    assert trial.agent == ()


def test_an_extract_of_an_extract_is_the_same(make_case):
    once = without_steps(make_case(outcome="failed"))
    assert without_steps(once) == once
