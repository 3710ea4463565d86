from memstory.codec import encode
from memstory.results.recordings import RECORDINGS_NAME, read_recordings, recordings_text


def test_what_is_written_is_read_as_the_same_recordings(tmp_path, results):
    path = tmp_path / RECORDINGS_NAME
    path.write_text(recordings_text(results), "utf-8")
    read = {case.id: case for case in read_recordings(path)}
    with_trials = {result.id: result for result in results if result.trials}
    assert read.keys() == with_trials.keys()
    for name, result in with_trials.items():
        assert encode(read[name].recordings) == encode([trial.recording for trial in result.trials])
        assert (read[name].outcome, read[name].digest) == (result.outcome, result.digest)


def test_a_line_holds_a_case_whatever_characters_it_has(tmp_path, make_case):
    text = "line end \u2028 surrogate \ud800 control \x1b"
    case = make_case(trials=(make_case.trial(answer=text),))
    path = tmp_path / RECORDINGS_NAME
    path.write_text(recordings_text([case]), "utf-8")
    (read,) = read_recordings(path)
    assert read.recordings[0].steps[0].result["answer"] == text
