"""Writes distractors.jsonl: 10,000 turns of people who have nothing to do with lifelines, for the curve of its bench.

`python make_turns.py` writes the same file every time; it is made when it is needed, and not kept in git. The people
talk about what the circles talk about (homes, rents, jobs, pets, illnesses, plans, clubs), so that they compete.
"""  # noqa: INP001  (a script beside its data, no package)

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
COUNT = 10_000
SEED = 20260102
BEGIN, DAYS = datetime(2024, 1, 1, 8, tzinfo=UTC), 730

SLOTS: dict[str, tuple[str, ...]] = {
    "who": (
        "Aksel", "Bruna", "Chidi", "Dorota", "Fenna", "Gustavo", "Hanne", "Ilkka", "Jovana", "Leda",
        "Marit", "Nuno", "Pavel", "Quim", "Rania", "Sunniva", "Teodor", "Ulla", "Viggo", "Wiebke", "Xenia", "Zofka",
        "Anselma", "Birgit", "Caspar", "Delphine", "Eamon", "Freya", "Goran", "Hedda", "Imre", "Jasmin", "Kenji",
        "Lorcan", "Minna", "Niamh", "Oskar", "Petra", "Ruben", "Signe", "Tariq", "Ursel", "Vesna", "Wanda", "Yara",
    ),
    "kin": ("sister", "brother", "mother", "father", "aunt", "cousin", "grandfather", "neighbour", "boss", "flatmate"),
    "child": ("daughter", "son", "niece", "nephew", "godchild", "youngest", "eldest"),
    "animal": ("dog", "cat", "tortoise", "cockerel", "goat", "parrot", "pony", "rabbit"),
    "food": ("turkey and rice", "dry kibble", "sardines", "boiled eggs", "oats", "carrots", "lamb", "tinned tuna"),
    "job": (
        "tram driver", "night nurse", "roofer", "lab technician", "pharmacist", "boatbuilder", "class teacher", "baker",
        "dispatcher", "deputy head", "bicycle mechanic", "court clerk", "museum guide", "harbour pilot", "accountant",
    ),
    "place": (
        "Turku", "Bergamo", "Leiden", "Cork", "Aarhus", "Girona", "Graz", "Tartu", "Braga", "Namur", "Split", "Basel",
        "Nantes", "the next valley", "the old harbour", "a flat over the chemist's", "a houseboat", "the sixth floor",
    ),
    "sum": ("18", "35", "46", "60", "71", "95", "112", "145", "210", "390", "480", "620", "840", "965", "1,180"),
    "small": ("two", "three", "four", "five", "six", "seven", "nine", "eleven"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        "January", "February", "March", "April", "June", "July", "August", "September", "October", "November",
        "December",
    ),
    "when": ("a week ago", "the other day", "at Easter", "last month", "in the holidays", "on Shrove Tuesday"),
    "tune": ("cornet", "violin", "recorder", "drums", "accordion", "upright piano", "bassoon", "trombone"),
    "sport": ("judo", "gig rowing", "football", "climbing", "fencing", "table tennis", "swimming", "chess"),
    "illness": (
        "a cracked wrist", "a wasp sting", "the shingles", "a cataract", "low iron", "a torn tendon", "an abscess",
        "an inflamed pancreas", "two stitches in the chin", "a heel spur",
    ),
    "pill": ("5 mg", "7.5 mg", "10 mg", "25 mg", "half a tablet"),
    "thing": (
        "greenhouse", "pond", "shed", "boiler", "telescope", "rowing machine", "second-hand phone", "cargo bike",
        "tractor", "campervan", "hen house", "tree house", "polytunnel", "washing machine", "bookcase", "e-scooter",
    ),
    "cake": ("poppy-seed roll", "carrot cake", "lighthouse cake", "plum tart", "cheesecake", "wedding cake"),
    "club": ("allotment club", "choir", "chess club", "rowing club", "book club", "lifeboat crew", "house meeting"),
    "trip": ("the Rhine by bike", "Porto", "Bremen", "a yurt in Wales", "the flower show", "Seville"),
    "harm": ("hail", "the gale", "the flood", "a fox", "the frost", "a burst pipe", "a ball", "thieves"),
    "bite": ("a glove", "eleven raffle tickets", "the felt of a stool", "a chess piece", "a straw hat", "the notes"),
}  # fmt: skip

SENTENCES = (
    "Since the first of {month} {who} pays {sum} a month in rent, and the landlord calls that a favour.",
    "{who}'s {kin} has moved to {place}, with a cord by the bed and a view of the bins.",
    "{who} is a {job} now, since {month}, and before that there were {small} years as a {job2}.",
    "My {kin} has given up as a {job}; the pay was {sum} a week and the boss sang.",
    "The {animal} gets nothing but {food} since {month}, the vet wants it so, and {who} cooks it.",
    "{who}'s {animal} ate {bite} {when}, and we need not discuss how we know.",
    "For the {animal} {who} paid the vet {sum} pounds on {day}, for {illness}.",
    "{who} takes {pill} of the tablet since {month}, the doctor doubled it after the blood pressure.",
    "The old doctor is retiring in {month}, so {who} and the {child} go to the one in {place}.",
    "{who}'s {child} has {illness}, from the slide, and asked the nurse for the thread.",
    "{who} began with the {tune} in {month}, borrowed, with a dent, and the {animal} left the room.",
    "No more {tune} for {who}'s {child}; it is {sport} now, twice a week, in {place}.",
    "The {child} of {who} does {sport} since {month} and sits in seat {small}.",
    "{who} wanted to buy a {thing} for {sum} pounds, and then the floor of it was rotten, so no {thing} at all.",
    "We planned {trip} for {month}, {who} and I, and it is off: {who2}'s {kin} has {illness}.",
    "{who} promised the {child} a {thing} by {month}, and it is in writing, on the fridge.",
    "{who} said that it was {who2} who broke the {thing}; {who2} says it was {harm}.",
    "If you ask {who}, we lost the quiz because {who2} insisted on a wrong river.",
    "The {club} meets on the first {day} of the month now, at eight, because {who} works on the other one.",
    "At the {club} they have put {who} in the chair, by {small} votes, and {who2} counted twice.",
    "The fee of the {club} goes up to {sum} a year, says {who}, and the gate has a new code.",
    "{who} keeps {small} hens since {month}; there were more, but {harm} came first.",
    "A half dozen eggs from {who} is {sum} pence now, because the sack of feed went up.",
    "{who} baked a {cake} for the {club} on {day} and it was gone before the minutes.",
    "{who} sold the {thing} online for {sum}, to a couple with a very small car.",
    "The landlady paid {sum} for the repair after {harm}, and {who} held the ladder.",
    "The old car of {who} failed its test in {month}, brown lace under the doors, {sum} to mend it.",
    "{who} was fined {sum} for parking on the slipway, and the ticket came in a plastic bag.",
    "{who}'s {kin} sent a parcel on {day}, {small} kilos, with socks and a {cake}.",
    "{who} has a new phone since {month}; the old one is in the water of the hens.",
    "{who} from {place} slept in the spare room for {small} nights and left with my plums.",
    "They broke into {who}'s shed {when} and took {small} jars of honey and the {thing}.",
    "{who} and {who2} are engaged since {month}, it was at the {club}, with everybody in oilskins.",
    "{who} teaches the class of my {child} since {month}, and comes by {thing}.",
    "{who} is not to be confused with my {kin}, also {who}, who lives in {place}.",
    "Nobody knows why {who} stopped eating meat in {month}; the {child} drew a calf at dinner.",
    "{who}'s mooring costs {sum} a year since {month}, for a cleat and a tap.",
    "{who} went to the theatre on {day}, three hours, and the trees were made of mops.",
    "The broadband of the house comes from another company since {month}, {who} sat on the stairs and watched a film.",
    "{who}'s {kin} had an operation on the right eye in {month} and says everybody got old overnight.",
)
"""What carries no fact of the circles, about the sort of thing that they talk about."""

OPENINGS = (
    "", "", "Before I forget: ", "You asked me, so here it is. ", "By the way, ", "Oh, and ", "Did you hear? ", "So, ",
)  # fmt: skip
CLOSINGS = ("", "", " That is all I know.", " Can you believe it?", " More on the phone.", " So it goes.")


def sentence(draw: Random) -> str:
    """Return one sentence with its places filled: `{who}` and `{who2}` are two people."""
    chosen: dict[str, str] = {}
    template = draw.choice(SENTENCES)
    for slot in re.findall(r"\{(\w+)\}", template):
        words = [word for word in SLOTS[slot.rstrip("2")] if word not in chosen.values()]
        chosen.setdefault(slot, draw.choice(words))
    return template.format(**chosen)


def turns() -> Iterator[dict[str, Any]]:
    """Yield the rows; no two say the same, and none names anybody of the circles."""
    draw = Random(SEED)  # noqa: S311  (chance that can be repeated, not a secret)
    taken = frozenset((HERE / "names.txt").read_text("utf-8").split())
    people = [name for name in SLOTS["who"] if name.lower() not in taken]
    seen: set[str] = set()
    while len(seen) < COUNT:
        said = f"{draw.choice(OPENINGS)}{sentence(draw)} {sentence(draw)}{draw.choice(CLOSINGS)}"
        if said in seen or taken & set(re.findall(r"\w+", said.lower())):
            continue
        seen.add(said)
        moment = BEGIN + timedelta(days=draw.randrange(DAYS), minutes=draw.randrange(840))
        speaker = draw.choice(people)
        metadata = {"session": f"other-{moment:%Y-%m-%d}", "speaker": speaker, "said_at": f"{moment:%Y-%m-%dT%H:%M:%S}"}
        text = f"[{moment:%Y-%m-%d}] {speaker}: {said}"
        yield {"id": f"turn.{len(seen):05}", "text": text, "metadata": metadata}


if __name__ == "__main__":
    lines = "".join(f"{json.dumps(row)}\n" for row in turns())
    (HERE / "distractors.jsonl").write_text(lines, encoding="utf-8")
