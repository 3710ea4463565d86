"""What an exploration leaves behind while it goes on."""

from memstory.exploring.record import Record, read_record, write_record
from memstory.exploring.search import FAILS, Breach, Exploration


def finding(number, *features):
    return Breach(promise="kept", op="list", features=features, says="it is gone", seed=0, number=number, repeated=3,
                  plays=3, steps=2, story=f"story: X{number}\ntitle: T\n", written=FAILS)  # fmt: skip


def test_the_story_of_a_finding_that_became_part_of_another_goes(tmp_path):
    wide, narrow = finding(1, "batch", "limit"), finding(2, "batch")
    write_record(tmp_path, Record(explorations=[Exploration(target="mine", seed=0, findings=[wide])]))
    write_record(tmp_path, Record(explorations=[Exploration(target="mine", seed=0, findings=[narrow])]))
    assert [path.name for path in tmp_path.glob("*.story.yaml")] == ["mine-x2.story.yaml"]
    (left,) = read_record(tmp_path).explorations
    assert [list(one.features) for one in left.findings] == [["batch"]]
