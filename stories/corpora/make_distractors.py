"""Writes distractors.jsonl, the memories that `perturb: {distractors: N}` puts beside a corpus.

`python make_distractors.py` writes the same file every time. The memories are plausible notes about other people and
other projects; many differ from a note in the corpora beside this file in nothing but who, which or how much.
"""  # noqa: INP001  (a script beside its data, no package)

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

COUNT = 4000
SEED = 20260101

PEOPLE = (
    "Aksel Bruna Chidi Dorota Emre Fenna Gustavo Hanne Ilkka Jovana Kofi Leda Marit Nuno Odile Pavel Quim Rania "
    "Sunniva Teodor Ulla Viggo Wiebke Xenia Yusuf Zofia Anselm Birgit Caspar Delphine"
)
PROJECTS = (
    "Anvil Bramble Causeway Driftwood Ember Foxglove Gantry Hollow Inkwell Juniper Kestrel Lantern Mistral Nettle "
    "Oxbow Parsnip Quarry Rudder Saltmarsh Thicket Undertow Vellum Windlass Yarrow Zephyr"
)
LEXICON: dict[str, tuple[str, ...]] = {
    "person": tuple(PEOPLE.split()),
    "project": tuple(PROJECTS.split()),
    "thing": (
        "the tram departure board", "the bakery's order book", "the choir's sheet-music shelf", "the ski-lift counter",
        "the museum's ticket desk", "the beehive scales", "the orchard's picking plan", "the swimming-hall rota",
        "the bicycle workshop's till", "the radio station's playlist", "the library's reading room", "the tide gauge",
        "the print shop's queue", "the vineyard's weather log", "the climbing wall's waiver form", "the repair cafe",
        "the school canteen's menu", "the allotment waiting list", "the ice rink's booking page", "the cheese cellar",
    ),
    "language": (
        "Go", "Python", "TypeScript", "Ruby", "Haskell", "OCaml", "C#", "Scala", "Clojure", "Zig", "PHP", "Dart", "Lua",
    ),
    "database": ("MariaDB", "DuckDB", "Redis", "MongoDB", "CockroachDB", "a folder of CSV files", "Firebird", "LMDB"),
    "editor": ("Vim", "Emacs", "Zed", "Kate", "Sublime Text", "Nova", "IntelliJ", "Micro", "Geany"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "part": ("morning", "afternoon", "evening"),
    "month": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "November", "December",
    ),
    "city": (
        "Turku", "Bergamo", "Leiden", "Cork", "Aarhus", "Girona", "Plzen", "Graz", "Tartu", "Braga", "Malmo", "Namur",
        "Split", "Basel", "Gdansk", "Nantes",
    ),
    "food": (
        "oysters", "shellfish", "celery", "sesame", "lupin", "strawberries", "mustard", "soya", "kiwi fruit",
        "buckwheat", "eggs", "lentils",
    ),
    "drink": ("green tea", "oat cocoa", "filter coffee", "mint tea", "tonic water", "rooibos", "an espresso", "kefir"),
    "colour": ("teal", "dark red", "ochre", "violet", "slate grey", "pale green", "navy blue", "magenta", "cream"),
    "device": (
        "a Raspberry Pi", "an STM32 board", "an old laptop", "a rented server", "a fanless mini PC", "an nRF52 board",
        "a second-hand tablet", "an Arduino",
    ),
    "metric": ("the temperature", "the water level", "the air pressure", "the queue length", "the light level",
               "the noise level", "the flow rate", "the battery charge"),
    "hobby": ("rowing", "bookbinding", "fencing", "bouldering", "lino printing", "birdwatching", "chess", "weaving",
              "sea kayaking", "calligraphy", "orienteering", "playing the viola"),
    "relative": ("sister", "brother", "mother", "father", "cousin", "neighbour", "flatmate", "aunt", "grandfather"),
    "licence": ("the Apache licence", "the MIT licence", "the BSD licence", "the EUPL", "the GPL", "the ISC licence"),
    "channel": ("by text message", "by email", "by a note on the door", "on the team's chat", "by telephone"),
    "fault": ("the nightly import", "the label printer", "the door sensor", "the password reset", "the backup job",
              "the search box", "the invoice export", "the calendar feed"),
    "small": ("two", "three", "four", "six", "seven", "eight", "ten", "eleven"),
    "large": ("35", "60", "75", "120", "150", "240", "300", "450", "650", "900"),
    "hour": ("seven", "eight", "quarter past nine", "ten", "half past eleven", "noon", "two", "four", "half past six"),
}  # fmt: skip

TEMPLATES = (
    # Near-misses of facts.jsonl: the same sort of sentence about somebody or something else.
    "{person} writes the software for {thing} in {language} and keeps it to that one language.",
    "The controller of {thing} runs on {device} with {large} MB of memory.",
    "{metric} at {thing} is read every {small} minutes, except at night.",
    "Readings from {thing} are uploaded every {small} hours, over the mobile network.",
    "If {metric} at {thing} leaves its range, {person} wants to be told {channel}.",
    "{person} reviews merge requests on {day} {part}s.",
    "{person} uses {editor} as the editor for everything but slides.",
    "The software behind {thing} is called {project}.",
    "{project} must be ready for use by the end of {month}.",
    "{project} is written in {language}; {person} would have preferred {language2}.",
    "{project} keeps its records in {database}, which {person} looks after.",
    "A version of {project} is released every {small} weeks, on a {day}.",
    "In {project}, entries that were withdrawn are shown in {colour}.",
    "{person} is allergic to {food}.",
    "The {project} team meets on {day}s at {hour}, with cameras off.",
    "{project} is published under {licence} after a long talk with {person}.",
    "{project} is hosted in {city}, on {device} that {person} paid for.",
    "{person} drinks {drink} and only after {hour}.",
    "The data of {project} are copied to {city} every {day} {part}.",
    "Only {person} and {person2} may change settings in {project}.",
    "Old records of {project} are removed after {small} months.",
    "Supplies for {thing} are ordered again when fewer than {large} are left.",
    "A visitor of {thing} may book at most {small} places in one month.",
    "{person} wants all text in {project} set no smaller than {small} millimetres.",
    "{small} volunteers look after {thing} on {day} {part}s.",
    "{person} sleeps late on {day}s and should not be called before {hour}.",
    "{project} has to work without a network for {small} days at a time.",
    "{project} speaks the languages of {city} and {city2}, and no others.",
    # Everyday memories of an assistant.
    "{person} moved from {city} to {city2} in {month}.",
    "{person} takes up {hobby} again in {month}.",
    "{person}'s {relative} lives in {city} and comes to stay every {month}.",
    "{person} prefers to be reached {channel}, never before {hour}.",
    "{person} has a standing appointment on {day}s at {hour}.",
    "{person} asked to be reminded of the {relative}'s birthday in {month}.",
    "{person} is learning {language} for a project about {thing}.",
    "{person} does not want meetings on {day} {part}s.",
    "{person}'s favourite colour for charts is {colour}.",
    "{person} paid {large} euros for the course in {hobby}.",
    "On the trip to {city}, {person} wants to see {thing}.",
    "{person} and {person2} share a season ticket for {thing}.",
    # Working notes.
    "In {project}, {fault} failed {small} times in {month}; the cause was {database}.",
    "{person} fixed {fault} of {project} by moving it to {device}.",
    "{fault} of {project} takes {large} seconds, which {person} finds too long.",
    "{project} was to be rewritten in {language}, but {person} stopped that in {month}.",
    "The invoice for {project} goes to {person} in {city} by the end of {month}.",
    "{person} decided that {project} gets no {language} plugins.",
    "The test machine of {project} is {device} under {person}'s desk in {city}.",
    "{thing} is closed in {month}, so {project} is maintained then.",
    "{person} handed {project} over to {person2} on a {day} in {month}.",
    "The contract for {thing} runs for {small} years and ends in {month}.",
    "{person} keeps the passwords of {project} on paper in {city}.",
    "{thing} had {large} visitors in {month}, counted by {project}.",
)


def memories(draw: Random) -> Iterator[str]:
    """Yield sentences without end, every template in its turn; the same `draw` yields the same."""
    while True:
        for template in TEMPLATES:
            yield filled(template, draw)


def filled(template: str, draw: Random) -> str:
    """Return a sentence: `{person}` and `{person2}` are two people."""
    chosen: dict[str, str] = {}
    for slot in re.findall(r"\{(\w+)\}", template):
        words = [word for word in LEXICON[slot.rstrip("2")] if word not in chosen.values()]
        chosen.setdefault(slot, draw.choice(words))
    text = template.format(**chosen)
    return text[0].upper() + text[1:]


def lines() -> str:
    """Return the text of the file."""
    found: dict[str, None] = {}
    for text in memories(Random(SEED)):  # noqa: S311  (chance that can be repeated, not a secret)
        found.setdefault(text)
        if len(found) == COUNT:
            break
    rows = ({"id": f"distractor.{number:04}", "text": text} for number, text in enumerate(found, start=1))
    return "".join(f"{json.dumps(row)}\n" for row in rows)


if __name__ == "__main__":
    Path(__file__).with_name("distractors.jsonl").write_text(lines(), encoding="utf-8")
