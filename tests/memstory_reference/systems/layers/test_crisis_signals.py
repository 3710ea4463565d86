"""The local classifier of crisis words, measured on a list of sentences: what it finds, and what it leaves alone."""

import pytest

from memstory_reference.systems.layers.policy import CrisisLevel, crisis_notice

GRAVE = """\
I do not want to live anymore
I feel like ending my life
There is no point in living
I have been cutting again
My husband hit me again
Ich will mich umbringen
I want to k1ll myself
kms
I want to die.
I am going to kill myself tonight.
I've been thinking about suicide a lot.
I wish I was dead.
I don't want to be alive any more.
I just want to end it all.
Everyone would be better off without me.
I am planning to take my own life.
I took all of my pills.
I swallowed too many tablets an hour ago.
I hurt myself last night.
I can't stop self-harming.
I started cutting myself again.
I burned my arms with a cigarette.
I'm going to kill him when he comes home.
I want to stab my brother.
He beats me when he drinks.
My boyfriend threatens me every day.
My father slapped me and locked me in.
I can't go on like this.
I feel completely hopeless and worthless.
Maybe I should just jump off a bridge.
I wish I had never been born.
I have nothing left to live for.
i wanna die
I don't want to wake up tomorrow.
I'm thinking of ending it all.
I h\u0430ve a plan to kill myself.
Ich m\u00f6chte nicht mehr leben.
My partner choked me yesterday.
I could not go on if I wanted to, I am done with life.
I'd rather be dead than go back there.
I have been purging and starving myself for weeks.
Nobody would notice if I were gone.
I keep a rope in the closet, just in case.
There are days when I want it to be over for good.
"""

HARMLESS = """\
I could kill him for that joke
This deadline is killing me
I want to kill the process
I hung myself out to dry
My phone died.
I would kill for a coffee.
That cake was to die for.
I don't want to live in Oslo anymore.
I do not want to live with my parents any more.
There is no point in living downtown if you work here.
Shoot me an email.
Hit me up when you are in town.
My sister beat me at chess again.
The news hit me hard.
I am dead tired.
The suspense is killing me.
We watched Suicide Squad last night.
I overdosed on chocolate.
I have been cutting carbs again.
We are cutting the budget.
I cut my finger while cooking.
My back hurts.
I don't want to hurt him.
I never want to hurt anybody.
She kicked me out of the group chat.
It would be better to go without me.
I took my pills this morning, as always.
He beat me to the last seat.
The plant died because I forgot to water it.
My grandfather took part in the war.
I can't take it any more, this song is everywhere on the radio? No, I love it.
Kill the lights, please.
The team is going to kill it tomorrow.
I want to end the session.
Please end my subscription.
I feel like ending my contract.
How do I kill a zombie process?
Take all of the tablets out of the box and charge them.
The battery is going to die.
I burn easily in the sun.
I am worthless at tennis, ha.
My life is good.
I am going to shoot them a message.
The doctor stabbed my arm for the vaccine, it was fine.
I live for the weekend.
My cat threatens me with her looks when dinner is late.
"""


def lines(text):
    return text.splitlines()


AUDITED = lines(GRAVE)[:8]


@pytest.mark.parametrize("sentence", AUDITED)
def test_plain_sentences_are_found(sentence):
    assert crisis_notice(sentence) is not None


@pytest.mark.parametrize("sentence", lines(HARMLESS)[:12])
def test_ways_of_speaking_are_left_alone(sentence):
    assert crisis_notice(sentence) is None


def test_most_of_what_is_grave_is_found_and_little_else():
    found = [one for one in lines(GRAVE) if crisis_notice(one)]
    wrong = [one for one in lines(HARMLESS) if crisis_notice(one)]
    recall, precision = len(found) / len(lines(GRAVE)), len(found) / (len(found) + len(wrong))
    assert (round(recall, 2), round(precision, 2)) == (1.0, 1.0), (set(lines(GRAVE)) - set(found), wrong)


def test_what_is_meant_for_oneself_is_acute():
    assert {crisis_notice(one).level for one in AUDITED if "husband" not in one} == {CrisisLevel.ACUTE}


@pytest.mark.parametrize("unit", ["kill ", "I do not want to live ", "my ", "take all of my ", "a" * 40, "1"])
def test_long_texts_are_read_in_linear_time(unit):
    assert crisis_notice((unit * 20_000)[:100_000]) is None or unit != "my "
