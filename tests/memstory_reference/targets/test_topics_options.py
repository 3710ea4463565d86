import pytest

from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.errors import InputError
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.targets.topics import topics_options


def test_without_options_the_settings_are_the_shipped_ones():
    options = topics_options({}, has_vectors=False)
    assert (options.settings, options.profile) == (TopicsSettings.default(), NO_PREFIXES)


def test_an_option_is_a_setting_and_embedder_is_the_embedding_model():
    settings = topics_options({"toolset": "dual", "top_k": 3, "embedder": "ollama:x"}, has_vectors=False).settings
    assert (settings.toolset, settings.top_k, settings.embedding_model) == ("dual", 3, "ollama:x")


def test_a_profile_gives_fixed_vectors_the_prefixes_of_a_model():
    options = topics_options({"profile": "nomic-embed-text"}, has_vectors=True)
    assert (options.profile.document, options.profile.query) == ("search_document: ", "search_query: ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"toolset": "triple"}, "options: toolset is 'triple'; allowed: single or dual"),
        ({"embedder": 5}, "embedding_model is 5"),
        ({"profile": "nomic-embed-text"}, "profile goes with vectors"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(given, said):
    with pytest.raises(InputError) as error:
        topics_options(given, has_vectors=False)
    assert said in str(error.value)


def test_a_profile_that_nobody_knows_is_refused():
    with pytest.raises(InputError, match="allowed: nomic-embed-text"):
        topics_options({"profile": "unknown"}, has_vectors=True)
