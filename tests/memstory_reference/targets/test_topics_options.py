import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import StoryError
from memstory.contract.target import Environment
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.targets.topics import TopicsFactory


@pytest.fixture
async def opened(tmp_path):
    """Open a target on options and return it; it is closed at the end."""
    targets = []

    async def open_(options, **given):
        target = TopicsFactory().target()
        await target.open(Environment(workspace=str(tmp_path), owner="ann", options=options, **given), StoryClock())
        targets.append(target)
        return target

    yield open_
    for target in targets:
        await target.close()


async def test_without_options_the_settings_are_the_shipped_ones(opened):
    target = await opened({}, vectors={"a": [1, 0]})
    assert target._settings == TopicsSettings.default()


async def test_an_option_is_a_setting_and_embedder_names_the_model(opened):
    target = await opened({"toolset": "dual", "top_k": 3, "embedder": "words"})
    assert (target._settings.toolset, target._settings.top_k) == ("dual", 3)
    assert (await target.about())["embedder"] == "words-512"


async def test_a_profile_gives_fixed_vectors_the_prefixes_of_a_model(opened):
    profile = (await opened({"profile": "nomic-embed-text"}, vectors={"a": [1, 0]}))._ports.embedder.profile
    assert (profile.document, profile.query) == ("search_document: ", "search_query: ")


@pytest.mark.parametrize(
    ("options", "given", "said"),
    [
        ({"toolset": "triple"}, {}, "options: toolset is 'triple'; allowed: single or dual"),
        ({"embedder": 5}, {}, "embedder is 5; allowed: all-MiniLM"),
        ({"bus": "tram"}, {}, "bus 'tram' is not allowed; allowed: in_process, nats"),
        ({"profile": "nomic-embed-text"}, {}, "profile goes with vectors"),
        ({"profile": "unknown"}, {"vectors": {"a": [1, 0]}}, "allowed: nomic-embed-text"),
    ],
)
async def test_a_wrong_option_is_named_with_what_is_allowed(opened, options, given, said):
    with pytest.raises(StoryError) as error:
        await opened(options, **given)
    assert said in str(error.value)
