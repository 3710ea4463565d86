"""`memstory explain`: what a story needs of a target, where that comes from, and which targets have it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memstory.commands.command import FINDINGS, OK, Command, add_json
from memstory.commands.output import say, say_aside, say_json, table
from memstory.commands.story_files import SUFFIXES, story_files
from memstory.commands.story_loading import LoadedStories, load
from memstory.commands.target_list import load_known, load_typed
from memstory.contract.errors import MemstoryError, SetupError
from memstory.contract.target import Capability, TargetFactory
from memstory.language.capabilities import meaning, needs_of_story
from memstory.language.registry import unknown_name_message
from memstory.language.story import Story
from memstory.models.shim import gives_chat_to, with_shim


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """What one target has to say to one story: `lacks` is empty where it can; `problem` where it cannot even tell.

    `is_shimmed` says that the harness talks in its place: it does not chat itself.
    """

    target: str
    lacks: Sequence[Capability] = ()
    problem: str | None = None
    is_shimmed: bool = False

    @property
    def can(self) -> bool:
        """Whether the story would run."""
        return not self.lacks and self.problem is None


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "story", metavar="STORY", help="a story file, or the id or slug of a story here or of a bundled one"
    )
    parser.add_argument(
        "--target", action="append", metavar="NAME", help="ask only this target; can be repeated (default: all known)"
    )
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    loaded, stories = _chosen_stories(chosen.story)
    for error in loaded.errors if chosen.story in loaded.files or not stories else ():
        say_aside(str(error))
    if not stories:
        return FINDINGS
    factories, problems = _factories(chosen.target)
    answers = {
        name: [*(_ability(story, target, factory) for target, factory in factories.items()), *problems]
        for name, story in stories.items()
    }
    if chosen.json:
        say_json([_as_json(stories[name], answers[name]) for name in stories])
    else:
        say("\n\n".join(_as_text(stories[name], answers[name]) for name in stories))
    return OK if all(any(ability.can for ability in abilities) for abilities in answers.values()) else FINDINGS


def _chosen_stories(wanted: str) -> tuple[LoadedStories, Mapping[str, Story]]:
    """Return what was read, and the stories that are meant by name; rows of one story need the same, one is shown."""
    if Path(wanted).suffix in SUFFIXES:
        loaded = load(story_files([wanted]))
        return loaded, {story.id: story for story in loaded.stories}
    loaded = load(story_files(["."], bundled=True))
    stories = {story.id: story for story in loaded.stories}
    named = {name: story for name, story in stories.items() if wanted in {name, story.slug}}
    if named:
        return loaded, named
    if any(story.id == wanted for story in loaded.invalid):
        return loaded, {}
    raise SetupError(
        unknown_name_message(wanted, "story", stories, [story.slug for story in stories.values() if story.slug])
    )


def _factories(names: Sequence[str] | None) -> tuple[Mapping[str, TargetFactory], Sequence[Ability]]:
    """Return the factories by name; of those that nobody asked for, one that cannot be loaded only says so."""
    if names:
        return load_typed(names), ()
    found, problems = load_known()
    members = {name: factory for factories in found.values() for name, factory in factories.items()}
    return members, [Ability(target=name, problem=why) for name, why in problems.items()]


def _ability(story: Story, name: str, factory: TargetFactory) -> Ability:
    if story.targets and name not in story.targets:
        return Ability(target=name, problem=f"the story is only for {', '.join(story.targets)}")
    try:
        able = factory.abilities(story.options)
    except MemstoryError as error:
        return Ability(target=name, problem=str(error))
    is_shimmed = "chat" in story.needs and gives_chat_to(name, able)
    able = with_shim(able) if is_shimmed else able
    return Ability(target=name, lacks=sorted(story.needs - able), is_shimmed=is_shimmed)


def _as_text(story: Story, abilities: Sequence[Ability]) -> str:
    why = needs_of_story(story)
    needs = [[name, meaning(name), "; ".join(why[name])] for name in sorted(story.needs)]
    answers = [
        [ability.target, "yes" if ability.can else "no", ability.problem or _lacking(ability)]
        for ability in abilities
        if not story.targets or ability.target in story.targets
    ]
    return "\n\n".join([
        f"{story.id}{f' {story.slug}' if story.slug else ''}: {story.title}\n{story.mark}",
        table(["needs", "a target that", "because of"], needs, [None, 40, 50]) or "It needs nothing of a target.",
        *([f"The story is only for {', '.join(story.targets)}."] if story.targets else []),
        table(["target", "can", "lacks"], answers, [None, None, 70]) or "No target here has that name.",
    ])  # fmt: skip


def _lacking(ability: Ability) -> str:
    return ", ".join([*ability.lacks, *(["its own chat: the harness talks for it"] if ability.is_shimmed else [])])


def _as_json(story: Story, abilities: Sequence[Ability]) -> dict[str, object]:
    why = needs_of_story(story)
    return {
        "story": story.id,
        "slug": story.slug,
        "title": story.title,
        "where": str(story.mark),
        "needs": [
            {"capability": name, "meaning": meaning(name), "because": why[name]} for name in sorted(story.needs)
        ],
        "targets": [
            {
                "target": one.target,
                "can": one.can,
                "lacks": list(one.lacks),
                "problem": one.problem,
                "shim": one.is_shimmed,
            }
            for one in abilities
        ],
    }  # fmt: skip


COMMAND = Command(
    about=(
        "Show what a story needs from a target, which steps need it, and which of the known targets can run the "
        "story. You never write needs by hand: memstory derives them from the steps and expectations."
    ),
    examples="""
examples:
  memstory explain S5                                     a bundled story, or one of this folder, by its id
  memstory explain mine.story.yaml                        every story of a file
  memstory explain S5 --target my_memory:MyFactory        only whether your own backend can
""",
    exit_codes=("exit codes: 0 some target can run it, 1 none can or the story is invalid, 2 unknown story or target"),
    options=_options,
    run=_run,
)
