"""Story, seed and folder -> Environment: who owns a case's memories, and where they are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from memstory.case import Case
from memstory.contract.target import Environment, Tree
from memstory.datasets import Bounds


def owner_of(story_id: str, seed: int) -> str:
    """Return the user id of a case: its own for every story and seed, the same in every run.

    >>> owner_of("S5", 0)
    's5-b47312'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", story_id.lower()).strip("-")
    return f"{slug}-{blake2b(f'{story_id}/{seed}'.encode(), digest_size=3).hexdigest()}"


def make_environment(case: Case, bounds: Bounds, *, seed: int, options: Mapping[str, Tree]) -> Environment:
    """Return all that `case` decides about its target; the story's own options win over those of the run.

    Raises:
        StoryError: one of the story's options names a path out of `bounds`; those of the run may name any.
    """
    story = case.story
    bounds.check("options", story.options, story.mark)
    return Environment(
        workspace=str(bounds.workspace),
        owner=owner_of(story.id, seed),
        seed=seed,
        options={**options, **bounds.whole(story.options)},
        vectors=story.vectors,
        model_rules=story.model,
    )


def for_collection(env: Environment, number: int) -> Environment:
    """Return `env` with its own folder and owner for one collection of a retrieval task."""
    return replace(env, workspace=str(Path(env.workspace) / f"collection-{number}"), owner=f"{env.owner}.c{number}")
