"""The local classifier: what in a message must be logged, whether there is a model or not.

English, and three German ways to say it. It goes by who speaks of whom, what is wanted or done, and what turns the
meaning: a denial, a figure of speech, a film, one's work, a past that is over. What is only hinted at passes;
`benchmarks/guards.py` measures how much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memstory_reference.systems.layers.log_entries import CrisisLevel
from memstory_reference.text.word_frames import Frame, Words, readings

SPELLING: Final = ("suicidal", "suicide", "myself", "overdose", "overdosed", "disappear", "kill", "killing", "selfharm")
"""Words that are read misspelt too."""

SELF: Final = Words("i")
KIN: Final = Words(
    "he she they sister brother mother father mum mom dad daughter son wife husband partner boyfriend girlfriend "
    "friend flatmate roommate colleague uncle aunt cousin grandpa grandma grandfather grandmother ex boss child kid "
    "stepdad stepfather "
    "stepmother student neighbour neighbor classmate"
)
WANT: Final = Words(
    "want* wish* rather ready going hope* decided need plan* think* like urge about_to love prefer will would feel"
)
NOT: Final = Words("not never no nothing without nobody neither nor")
DIE: Final = Words(
    "die dying dead disappear not_exist end_it end_it_all ending_it_all it_to_be_over leave_this_world "
    "leave_this_life not_wake_up never_wake never_been_born was_never_born were_never_born sleep_forever "
    "sleep_for_ever be_gone be_no_more"
)
LIFE: Final = Words("live living alive life exist existing breathing be_here go_on going_on stay_alive wake_up")
TAKE_LIFE: Final = Words("kill* hang hanging shoot shooting drown* end ending unalive* stab* take taking took murder")
OWN_LIFE: Final = Words("myself my_life my_own_life")
THEIR_LIFE: Final = Words(
    "himself herself themselves themself his_life her_life their_life his_own_life her_own_life their_own_life"
)
HARM: Final = Words("cut cutting cuts burn* hurt* harm* injur* scratch* carv* starv* purging slash* punch* bit biting")
BODY: Final = Words("arm arms wrist wrists leg legs thigh thighs skin stomach")
PILLS: Final = Words(
    "pill pills tablet tablets paracetamol ibuprofen aspirin meds medication antidepressants insulin painkillers "
    "opioids"
)
MUCH: Final = Words(
    "all whole entire bottle too_many too_much handful lot many dozens twenty thirty forty fifty hundred"
)
HEIGHT: Final = Words("bridge roof building balcony ledge cliff window train rails tracks platform")

FIGURE: Final = Words(
    "embarrass* laugh* boredom bored dying_to killing_me killed_me to_die_for die_for kill_for than_eat died_of "
    "die_of phone battery laptop joke slack time career political commercial social squad process"
)
ACCIDENT: Final = Words(
    "shaving shaved cooking cook baking oven kitchen football gym sport* hik* tennis accident* slack sun sunburn* "
    "paper carbs hair training climbing ski* garden* stove candle budget"
)
OUTSIDE: Final = Words(
    "film movie scene song series book novel poem hero heroine character game dragon zombie news paper article rates "
    "statistics thesis research study studies hotline helpline prevention squad patients treat nurse painless history "
    "bc century said_to_have documentary podcast essay workshop training"
)
PRESCRIBED: Final = Words("doctor prescribed prescription always usual out_of dentist course antibiotic* vitamin*")
FOOD: Final = Words("sugar chocolate coffee caffeine cake sweets")
OVER: Final = Words(
    "years_ago decades_ago used_to in_my_teens in_my_twenties in_my_thirties in_my_youth as_a_teenager as_a_child "
    "at_school when_i_was_young before_i_was_born 19* long_ago"
)
AGAIN: Final = Words("again back lately still coming_back tonight now_the right_now these_days")
DENIED: Final = Words("not never no without")
_GOING_ON: Final = re.compile(r"\bnot (?:stop|help|quit|resist)\b")
"""No denial, though it has its words."""

PREPARING: Final = (
    Words("rope noose pills gun loaded razor blade blades"),
    Words("goodbye farewell note letters letter will_and"),
    Words("gave_my gave_away giving_away gave_the given_away"),
    Words("picked_the_day picked_a_date chosen_the_day find_me find_my_body know_how_i"),
    Words("done_with_living done_with_life loved_her loved_him loved_them loved_you_all sorry_for_everything"),
    Words("in_the_closet in_the_drawer just_in_case"),
)
"""Signs of a preparation; one alone is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """What is noticed where one of `frames` is found; `unless` is what turns its meaning anywhere in the clause.

    `deniable` ones are off behind a denial; what is `own` is meant whatever film or work is spoken of beside it.
    """

    name: str
    level: CrisisLevel
    frames: Sequence[Frame]
    unless: Words = FIGURE
    deniable: bool = True
    own: bool = True


_ACUTE, _CONCERN = CrisisLevel.ACUTE, CrisisLevel.CONCERN
_REASON: Final = Words("reason point use sense worth")
_OTHERS: Final = Words(
    "everyone everybody they kids children family anybody anyone nobody people wife husband you world"
)

SIGNALS: Final = (
    Signal(
        name="suicide",
        level=_ACUTE,
        frames=[
            Frame(TAKE_LIFE, OWN_LIFE, gap=1),
            Frame("end ending", "it_all everything_tonight", gap=0),
            Frame(SELF, WANT, DIE, gap=4),
            Frame("kms", gap=0, unless=Words("km miles run drive drove walk* 1* 2* 3* 4* 5* 6* 7* 8* 9*")),
            Frame(
                "think* thought want* pictur* imagin* plan* going should could",
                "jump* step*",
                "off from in_front_of",
                HEIGHT,
                gap=3,
            ),
            Frame("think* want* pictur* imagin* plan*", "driv* crash* steer*", "into", "tree wall truck traffic river"),
            Frame(
                "step* jump* throw* lie lying",
                "in_front_of under onto",
                "train express truck tracks rails metro",
                gap=3,
            ),
            Frame("painless quick* easiest best", "way ways method methods", "to_go to_die to_end", gap=1),
            Frame("death dying", "relief comfort* peace* calm*", gap=8),
            Frame("tired sick done", "of with", "alive living life existing breathing", gap=2),
            Frame("relief peace", "if when", "i heart", "die stopped stop gone dead", gap=3),
            Frame("mich", "umbring*", gap=2),
            Frame("selbstmord* suizid*"),
        ],
    ),
    Signal(
        name="suicide",
        level=_ACUTE,
        deniable=False,
        frames=[
            Frame(
                SELF,
                NOT,
                "want wish like care need",
                "to_live living to_exist to_be_alive to_go_on to_be_here",
                end=True,
            ),
            Frame(SELF, NOT, "want wish", "to_exist to_be_alive to_wake_up", gap=2),
            Frame(
                SELF, "wish want", "not_wake_up never_wake* never_been never_born could_disappear not_be_here", gap=6
            ),
            Frame(NOT, _REASON, "live living life be_alive go_on going_on stay_alive exist*", gap=4, end=True),
            Frame(
                "no not what why", _REASON, "to_live go_on_living staying_alive being_alive of_living of_life", gap=4
            ),
            Frame("life", NOT, "worth", gap=2),
            Frame("nothing", "live_for", gap=3),
            Frame(NOT, "mind care", "truck car bus train lorry", "hit* ran_over killed", "me", gap=4),
            Frame("better_off easier happier", "without_me", gap=3),
            Frame(_OTHERS, "better_off easier happier miss notice glad", "i", "gone dead not_here", gap=4),
            Frame(_OTHERS, NOT, "worry", "me", "ever again anymore", gap=4),
            Frame(SELF, "not no_longer", "problem burden trouble", "to for", gap=3),
            Frame(SELF, "burden", gap=5),
            Frame("when once after if", SELF, "not_around not_here no_longer_here dead", gap=2),
            Frame("take taking", "easy_way_out", gap=2),
            Frame("how_many how_much", PILLS, "not_wake* never_wake* die kill", gap=8),
            Frame("standing sitting", HEIGHT, "not_think not_coming not_going goodbye", gap=5),
            Frame("nicht_mehr", "leben", gap=1),
        ],
    ),
    Signal(
        name="suicide",
        level=_ACUTE,
        own=False,
        frames=[
            Frame("suicid*"),
            Frame("want* wish* threat* think* plan* talk* says said going might tried", TAKE_LIFE, THEIR_LIFE, gap=3),
            Frame(KIN, "rather want* wish* prefer*", "die dead be_gone disappear", gap=4),
        ],
    ),
    Signal(
        name="suicide",
        level=_ACUTE,
        own=False,
        deniable=False,
        frames=[Frame("he she they", NOT, "want wish", "to_live to_be_alive to_be_here", end=True)],
    ),
    Signal(
        name="self_harm",
        level=_ACUTE,
        unless=ACCIDENT,
        frames=[
            Frame(HARM, "myself", gap=0),
            Frame(HARM, "my", BODY, gap=1),
            Frame("started been am", "cutting", "again", gap=1),
            Frame("make making", "myself", "bleed bleeding vomit suffer", gap=1),
            Frame("cuts scars wounds", "on", "my", BODY, gap=1),
        ],
    ),
    Signal(
        name="self_harm",
        level=_ACUTE,
        own=False,
        unless=ACCIDENT,
        frames=[Frame(HARM, "herself himself themselves themself", gap=0), Frame("selfharm*")],
    ),
    Signal(
        name="violence",
        level=_ACUTE,
        unless=FIGURE | Words("lights shot message vaccine them_a them_an him_a her_a"),
        frames=[
            Frame(
                SELF,
                "going want plan* will about ready thinking",
                "kill stab shoot hurt* poison strangle beat attack killing stabbing shooting",
                KIN | Words("him her them somebody someone everyone baby neighbour neighbor teacher"),
                gap=2,
            ),
            Frame("bring* take* carry", "gun knife weapon", "school work office class", gap=3),
            Frame("voice voices", "tell* say* want*", "kill hurt stab harm attack", gap=4),
        ],
    ),
    Signal(
        name="overdose",
        level=_ACUTE,
        unless=PRESCRIBED | FOOD,
        own=False,
        frames=[
            Frame(SELF | KIN, "overdose overdosed overdosing", gap=4),
            Frame("took taken take swallow* taking", MUCH, PILLS, gap=3),
            Frame("took taken swallow*", PILLS, MUCH, gap=3),
            Frame("had took swallowed ate emptied", "packs pack bottle bottles box boxes handful", PILLS, gap=3),
            Frame("took swallowed emptied", "medicine_cabinet medicine_cupboard", gap=3),
            Frame("saving saved collecting hoarding stockpiling", PILLS, gap=4),
        ],
    ),
    Signal(
        name="hopeless",
        level=_CONCERN,
        deniable=False,
        unless=FIGURE | Words("hopeless_at worthless_at worthless_in"),
        frames=[
            Frame("can could", "not", "go_on", gap=1),
            Frame("can", "not", "take_it do_this cope bear_it", "anymore longer and", "no end future die hope", gap=4),
            Frame(SELF, "feel am", "hopeless worthless", gap=2),
            Frame("no", "way_out future hope", "for_me me left", gap=2),
            Frame("give giving", "up_on_life"),
        ],
    ),
    Signal(
        name="abuse",
        level=_CONCERN,
        unless=Words("chess tennis cards seat race game hit_me_up news vaccine looks"),
        frames=[
            Frame(
                KIN,
                "hit hits hitting beat beats beating kicks choked chokes punched punches slapped slaps slap raped "
                "rapes abuses abused threatened threatens strangled pushes burned",
                "me",
                gap=0,
            ),
            Frame(KIN, "threatened threatens threatening", "kill hurt beat", "me", gap=2),
            Frame(KIN, "touches touched", "me", "not_tell tell_nobody secret tell_anyone must_not", gap=6),
            Frame(KIN, "throws threw", "at_me", gap=3),
            Frame(KIN, "locks locked", "me", "in up cellar room", gap=2),
        ],
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisNotice:
    """What a message holds."""

    level: CrisisLevel
    signals: Sequence[str]


def crisis_notice(text: str) -> CrisisNotice | None:
    """Return what must be logged of a message, None for nothing.

    >>> crisis_notice("I want to die."), crisis_notice("My phone died.")
    (CrisisNotice(level=<CrisisLevel.ACUTE: 'acute'>, signals=('suicide',)), None)
    """
    found: dict[str, CrisisLevel] = {}
    for clauses in readings(text, SPELLING):
        whole = " | ".join(clauses)
        is_over = OVER.occurs_in(whole) and not AGAIN.occurs_in(whole)
        if is_over:
            continue
        found |= {one.name: one.level for one in SIGNALS if any(_is_meant(one, clause) for clause in clauses)}
        if sum(sign.occurs_in(whole) for sign in PREPARING) > 1 and (SELF | Words("my")).occurs_in(whole):
            found["suicide"] = _ACUTE
    if not found:
        return None
    # The graver ones stand first.
    names = sorted(found, key=lambda name: found[name] is not _ACUTE)
    return CrisisNotice(level=found[names[0]], signals=tuple(names))


def _is_meant(signal: Signal, clause: str) -> bool:
    if signal.unless.occurs_in(clause) or (not signal.own and OUTSIDE.occurs_in(clause)):
        return False
    for frame in signal.frames:
        match = frame.find(clause)
        if match is None:
            continue
        # A denial stands before what is denied, or between the one who speaks and it: "I would never hurt myself".
        before = _GOING_ON.sub("", " ".join(clause[: match.start()].split()[-3:]))
        if not (signal.deniable and (DENIED.occurs_in(before) or DENIED.occurs_in(match[0]))):
            return True
    return False
