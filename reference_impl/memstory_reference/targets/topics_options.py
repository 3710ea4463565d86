"""A story's options as settings of the topics system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memstory.contract.target import Json
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, profile_of
from memstory_reference.errors import InputError
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.targets.environment_ports import options_of

SETTINGS = options_of(TopicsSettings, but=("chroma_path", "chroma_server", "embedding_model"))
"""Options that are settings of the same name."""

IN_PROCESS, NATS = BUSES = ("in_process", "nats")

OPTIONS = (*SETTINGS, "bus", "embedder", "profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOptions:
    """`profile` gives fixed vectors the prefixes of a model; `has_server` puts the bus on a NATS server of the case."""

    settings: TopicsSettings
    profile: Profile = NO_PREFIXES
    has_server: bool = False


def topics_options(options: Mapping[str, Json], *, has_vectors: bool) -> TopicsOptions:
    """Return what `options` say, or raise InputError that names the option and what is allowed."""
    values = {name: value for name, value in options.items() if name in SETTINGS}
    if "embedder" in options:
        values["embedding_model"] = options["embedder"]
    settings = TopicsSettings.default().merge(values, "options")
    bus = options.get("bus", IN_PROCESS)
    if bus not in BUSES:
        raise InputError(f"options: bus {bus!r:.80} is not allowed; allowed: {', '.join(BUSES)}")
    profile = _profile(options.get("profile"), has_vectors=has_vectors)
    return TopicsOptions(settings=settings, profile=profile, has_server=bus == NATS)


def _profile(name: Json, *, has_vectors: bool) -> Profile:
    if name is None:
        return NO_PREFIXES
    if not has_vectors:
        raise InputError("options: profile goes with vectors; a real embedder has its own")
    profile = profile_of(name) if isinstance(name, str) else NO_PREFIXES
    if not profile.query:
        raise InputError(f"options: profile {name!r:.80} has no prefixes; allowed: nomic-embed-text")
    return profile
