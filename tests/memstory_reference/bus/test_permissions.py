import pytest

from memstory_reference.bus.permissions import PARTS, server_configuration
from memstory_reference.bus.subjects import check_pattern, matches


def may(part, kind, subject):
    allowed = getattr(PARTS[part], kind)
    return any(matches(check_pattern(one), subject.split(".")) for one in allowed)


@pytest.mark.parametrize(
    ("part", "subject"),
    [
        ("chat", "response.generation"),
        ("chat", "tool.result.recall_topic"),
        ("chat", "memory.result.entry"),
        ("tools", "response.generation"),
        ("tools", "agent.request.ask"),
        ("tools", "query.received"),
        ("agent", "memory.request.forget"),
        ("agent", "memory.result.entry"),
        ("memory", "agent.request.ask"),
        ("memory", "tool.result.recall_topic"),
        ("layers", "memory.request.forget"),
    ],
)
def test_a_part_may_not_speak_for_another(part, subject):
    assert not may(part, "publish", subject)


@pytest.mark.parametrize(
    ("part", "subject"),
    [("chat", "response.generation"), ("chat", "memory.request.write_topic"), ("layers", "tool.request.save_topic")],
)
def test_a_part_does_not_hear_what_is_not_for_it(part, subject):
    assert not may(part, "subscribe", subject)


def test_the_configuration_has_a_user_for_each_part_and_where_it_connects():
    text = server_configuration(lambda part: f"secret of {part}", port=4333)
    assert 'listen: "127.0.0.1:4333"' in text
    for part in PARTS:
        assert f"#   {part}: nats://{part}:secret of {part}@127.0.0.1:4333" in text
        assert f'user: "{part}", password: "secret of {part}"' in text
