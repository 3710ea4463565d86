"""A class with a fault ends red, though nothing is declared: its signatures promise, and what does not hold fails."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from memstory.bundled import bundled_stories
from memstory.conformance.probe import probe
from memstory.language.stories import load_stories
from memstory.playing import play
from memstory.targets.objects.target import ObjectFactory


class Sound:
    """Keeps notes in a file, each under a number of its own; finds what has a word in common."""

    def __init__(self, path="notes.json"):
        self.path = Path(path)
        self.notes = json.loads(self.path.read_text()) if self.path.exists() else []
        self.count = 0

    def save(self):
        self.path.write_text(json.dumps(self.notes))

    def add(self, text, user_id, metadata=None):
        self.count += 1
        note = {"id": str(uuid4()), "user": user_id, "text": text, "metadata": metadata or {}}
        self.notes.append(note)
        self.save()
        return note["id"]

    def search(self, query, user_id, limit=5):
        asked = set(query.lower().split())
        shared = [(len(asked & set(note["text"].lower().split())), note) for note in self.of(user_id)]
        found = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
        return [note for _, note in found[:limit]]

    def of(self, user_id):
        return [note for note in self.notes if note["user"] == user_id]

    def get(self, memory_id, user_id):
        return next((note for note in self.of(user_id) if note["id"] == memory_id), None)

    def get_all(self, user_id):
        return self.of(user_id)

    def update(self, memory_id, text, user_id):
        note = self.get(memory_id, user_id)
        if note is None:
            raise KeyError(memory_id)
        note["text"] = text
        self.save()

    def delete(self, memory_id, user_id):
        note = self.get(memory_id, user_id)
        if note is None:
            return False
        self.notes.remove(note)
        self.save()
        return True


class LeaksBetweenUsers(Sound):
    def search(self, query, user_id, limit=5):
        asked = set(query.lower().split())
        return [note for note in self.notes if asked & set(note["text"].lower().split())][:limit]


class GivesOthersById(Sound):
    def get(self, memory_id, user_id):
        return next((note for note in self.notes if note["id"] == memory_id), None)


class ForgetsNothing(Sound):
    def delete(self, memory_id, user_id):
        return self.get(memory_id, user_id) is not None


class LosesEachThird(Sound):
    def add(self, text, user_id, metadata=None):
        added = super().add(text, user_id, metadata)
        if self.count % 3 == 0:
            del self.notes[-1]
            self.save()
        return added


class StaleAfterUpdate(Sound):
    def update(self, memory_id, text, user_id):
        if self.get(memory_id, user_id) is None:
            raise KeyError(memory_id)
        self.add(text, user_id)


class IgnoresLimit(Sound):
    def search(self, query, user_id, limit=5):
        return super().search(query, user_id, limit=1000)


class DeletesAll(Sound):
    def delete(self, memory_id, user_id):
        known = self.get(memory_id, user_id) is not None
        self.notes = [note for note in self.notes if note["user"] != user_id] if known else self.notes
        self.save()
        return known


class SharesItsState(Sound):
    every = ()

    def __init__(self, path="notes.json"):
        self.path, self.notes, self.count = Path(path), list(self.every), 0

    def save(self):
        SharesItsState.every = self.notes


class DropsMetadata(Sound):
    def add(self, text, user_id, metadata=None):
        return super().add(text, user_id)


class LosesOnRestart(Sound):
    def save(self):
        if not self.path.exists():
            self.path.write_text("[]")


class FindsOldestFirst(Sound):
    def search(self, query, user_id, limit=5):
        return self.of(user_id)[:limit]


class DeletesWithoutUsers(Sound):
    def delete(self, memory_id):
        known = [note for note in self.notes if note["id"] == memory_id]
        self.notes = [note for note in self.notes if note not in known]
        self.save()
        return bool(known)


FOUND = {
    "LeaksBetweenUsers": ("faults/owners.yaml", "FO2", "leak", "scope.user"),
    "GivesOthersById": ("faults/owners.yaml", "FO1", "leak", "scope.user"),
    "DeletesWithoutUsers": ("faults/owners.yaml", "FO5", "loss", None),
    "ForgetsNothing": ("generic/forget.yaml", "G20", "leak", "delete"),
    "DeletesAll": ("generic/forget.yaml", "G20", "loss", "delete"),
    "LosesEachThird": ("generic/recall.yaml", "G1", "wrong", "list"),
    "LosesOnRestart": ("generic/recall.yaml", "G4", "loss", "persistent"),
    "IgnoresLimit": ("generic/recall.yaml", "G6", "wrong", None),
    "FindsOldestFirst": ("generic/recall.yaml", "G1", "wrong", None),
    "StaleAfterUpdate": ("generic/update.yaml", "G10", "wrong", "update"),
    "SharesItsState": ("generic/isolation.yaml", "G36", "leak", None),
    "DropsMetadata": ("faults/texts.yaml", "FM2", "wrong", "add.metadata"),
}
"""By class the bundled story that it fails, the harm, and the promise that a probe finds broken, where it finds one."""


def factory_of(name):
    factory = ObjectFactory(f"m:{name}", globals()[name])
    factory.spec = None  # No other process can import this file.
    return factory


async def result(name, file, story_id, folder):
    """Return how the first row of a bundled story that does not pass ends on a class, or the last row."""
    factory = factory_of(name)
    for story in load_stories(bundled_stories() / file, file):
        if story.id == story_id and (ended := await play(story, factory, folder)).outcome != "passed":
            break
    return ended


@pytest.mark.parametrize("name", FOUND)
async def test_a_broken_class_fails_a_bundled_story_with_its_harm(name, tmp_path):
    file, story_id, harm, _ = FOUND[name]
    (tmp_path / "sound").mkdir()
    (tmp_path / "broken").mkdir()
    sound = await result("Sound", file, story_id, tmp_path / "sound")
    broken = await result(name, file, story_id, tmp_path / "broken")
    assert (sound.outcome, broken.outcome, broken.harm) == ("passed", "failed", harm)


def broken_promises(name):
    found = probe(factory_of(name), {}, seconds=300)
    return {one.capability: one.why for one in found if one.is_promised and one.holds is not True}


@pytest.mark.parametrize("name", [name for name, (*_, promise) in FOUND.items() if promise])
def test_a_probe_finds_the_promise_that_is_broken(name):
    assert FOUND[name][-1] in broken_promises(name)


def test_all_that_a_sound_class_promises_holds():
    assert broken_promises("Sound") == {}
