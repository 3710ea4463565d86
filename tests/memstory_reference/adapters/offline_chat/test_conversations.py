"""Little conversations: something is said in one session and asked for in another, in words of all kinds.

They were first tried on a model that had not seen them; each rule that one of them called for is general.
"""

from __future__ import annotations

import pytest

ANSWERED = {
    "preferences": [
        (
            ["I'm more of a night owl when it comes to coding, and my theme of choice is Solarized Dark."],
            "Which theme do I use?",
            "Solarized Dark",
            "",
        ),
        (
            ["When you write code for me, I like four-space indentation."],
            "What indentation do I like?",
            "four-space",
            "",
        ),
        (["Jazz is what I listen to most."], "What music do I listen to most?", "Jazz", ""),
        (["I really can't get enough of Thai food."], "Do I like Thai food?", "Thai food", ""),
        (["Between trains and planes, I always go for trains."], "Do I prefer trains or planes?", "trains", ""),
        (["My go-to airline is Lufthansa."], "Which airline do I usually fly with?", "Lufthansa", ""),
        (["I can only sleep with the window open."], "How do I sleep?", "window open", ""),
        (["If I had to pick one pizza, it'd be Quattro Formaggi."], "Which pizza would I pick?", "Quattro", ""),
        (["Mountains beat beaches for me any day."], "Do I prefer mountains or beaches?", "ountains beat", ""),
        (["I'm crazy about board games."], "What games am I crazy about?", "board games", ""),
        (["My preferred meeting time is 10 in the morning."], "What time do I like meetings?", "10", ""),
        (["Please remember I take two sugars in my tea."], "How many sugars do I take in my tea?", "two", ""),
    ],
    "personal facts": [
        (["I grew up in Tromsø."], "Where did I grow up?", "Tromsø", ""),
        (["I play the cello."], "What instrument do I play?", "cello", ""),
        (["My blood type is AB negative."], "What's my blood group? I mean my blood type.", "AB negative", ""),
        (["I drive a 2011 Volvo V70."], "What car do I drive?", "Volvo", ""),
        (["My grandmother Ludmila turns 90 in June."], "When does my grandmother turn 90?", "June", ""),
        (["I studied chemistry in Leiden."], "What did I study?", "chemistry", ""),
        (["My husband works as a carpenter."], "What does my husband do?", "carpenter", ""),
        (["My flat is on the third floor."], "Which floor is my flat on?", "third", ""),
        (["I was raised by my grandparents in Split."], "Who raised me?", "grandparents", ""),
        (["We have twins, Noa and Eli."], "What are the names of my twins?", "Noa", ""),
        (["My passport expires in August 2031."], "When does my passport expire?", "August 2031", ""),
        (["I share an office with Priya."], "Who do I share an office with?", "Priya", ""),
        (["The name of my high school was Lindenhof."], "What was my high school called?", "Lindenhof", ""),
        (["My mother speaks Tagalog."], "Which language does my mother speak?", "Tagalog", ""),
        (["I broke my left wrist in 2019."], "Which wrist did I break?", "left", ""),
        (["I'm a member of the Alpine Club."], "Which club am I a member of?", "Alpine", ""),
    ],
    "project decisions": [
        (
            ["The team agreed to drop support for Python 3.8."],
            "What did we agree about Python 3.8?",
            "drop support",
            "",
        ),
        (["We're going to host everything on Fly.io."], "Where are we going to host everything?", "Fly.io", ""),
        (["Our main branch is called trunk."], "What's the name of our main branch?", "trunk", ""),
        (["We settled on Kafka as the message broker."], "Which message broker did we settle on?", "Kafka", ""),
        (["The API version for this project is v3."], "Which API version does the project use?", "v3", ""),
        (["For logging we picked structlog."], "What do we use for logging?", "structlog", ""),
        (["Our frontend is written in Svelte."], "What is our frontend written in?", "Svelte", ""),
        (
            ["We agreed that releases happen every second Wednesday."],
            "How often do releases happen?",
            "second Wednesday",
            "",
        ),
        (["The product owner is Hanneke."], "Who is the product owner?", "Hanneke", ""),
        (["We won't support Internet Explorer."], "Do we support Internet Explorer?", "won't", ""),
        (
            ["As of last week the staging server runs in Frankfurt."],
            "Where does the staging server run?",
            "Frankfurt",
            "",
        ),
        (["Decision: tickets are tracked in Linear."], "Where are tickets tracked?", "Linear", ""),
    ],
    "constraints": [
        (
            ["Avoid abbreviations in variable names."],
            "Are abbreviations in variable names okay?",
            "void abbreviations",
            "",
        ),
        (["Every pull request needs two approvals."], "How many approvals does a pull request need?", "two", ""),
        (["Under no circumstances may you share my address."], "May you share my address?", "no circumstances", ""),
        (["Keep functions shorter than 40 lines."], "How long may functions be?", "40 lines", ""),
        (["Commit messages have to be in English."], "In which language do commit messages have to be?", "English", ""),
        (["Refrain from using semicolons."], "May I use semicolons?", "efrain", ""),
        (["Nobody may merge without a review."], "Can I merge without a review?", "obody may merge", ""),
        (["Responses should be at most 100 words."], "How long should responses be?", "100 words", ""),
        (["All dates must follow ISO 8601."], "Which format must dates follow?", "ISO 8601", ""),
        (["Don't ever book me on a flight before 8am."], "Can you book me on a flight before 8am?", "on't ever", ""),
    ],
    "corrections": [
        (
            ["My favourite fruit is mango.", "I meant papaya, not mango."],
            "What's my favourite fruit?",
            "papaya",
            "mango",
        ),
        (
            ["My flight leaves at 7:40.", "Oops, I got that wrong: my flight leaves at 8:40."],
            "When does my flight leave?",
            "8:40",
            "7:40",
        ),
        (
            ["My favourite sport is tennis.", "I said tennis, but it should be badminton."],
            "What's my favourite sport?",
            "badminton",
            "",
        ),
        (
            ["Our mascot is a fox.", "Our mascot isn't a fox anymore, it's an owl."],
            "What's our mascot?",
            "owl",
            "is a fox",
        ),
        (
            ["We picked MySQL as our database.", "We switched from MySQL to Postgres."],
            "What database do we use?",
            "Postgres",
            "picked MySQL",
        ),
        (["My office is in room 210.", "My office moved to room 315."], "Which room is my office in?", "315", "210"),
        (["My cat is called Felix.", "Not Felix, sorry, Phoenix."], "What is my cat called?", "Phoenix", "Felix."),
        (
            ["The deadline is 1 June.", "Small update: the deadline is now 8 June."],
            "When is the deadline?",
            "8 June",
            "1 June",
        ),
        (["I work at Nokia.", "I left Nokia and now I work at Ericsson."], "Where do I work?", "Ericsson", ""),
    ],
    "two facts in one sentence": [
        (["I'm 29 and I've been a nurse for six years."], "How old am I?", "29", ""),
        (["My son Leo is seven and my daughter Ida is nine."], "How old is my daughter Ida?", "nine", ""),
        (
            ["I work from home on Mondays, but on Thursdays I'm in the office."],
            "Which day am I in the office?",
            "Thursday",
            "",
        ),
        (["My car is a blue Fiat, and my bike is a green Canyon."], "What colour is my bike?", "green", "blue"),
        (
            ["Remember that my landlady is Mrs Okafor and that the rent is 870 euros."],
            "How much is the rent?",
            "870",
            "",
        ),
        (
            ["I'm vegan and my girlfriend is allergic to shellfish."],
            "What is my girlfriend allergic to?",
            "shellfish",
            "",
        ),
        (["Our repo lives on GitLab and our CI runs on Buildkite."], "Where does our CI run?", "Buildkite", ""),
        (["My locker is number 12; my parking spot is B7."], "What's my parking spot?", "B7", ""),
        (["My uncle Joe lives in Perth and he's a welder."], "Where does my uncle live?", "Perth", ""),
    ],
    "indirect questions": [
        (["My shoe size is 44."], "I was wondering about my shoe size.", "44", ""),
        (["My gym locker code is 3391."], "I can't recall my gym locker code, can you help?", "3391", ""),
        (["My dentist is Dr. Feld."], "It would be great to know who my dentist is.", "Feld", ""),
        (["I'm training for the Berlin marathon."], "Any idea which marathon I'm training for?", "Berlin", ""),
        (["My insurance number is ZK-88120."], "I need my insurance number.", "ZK-88120", ""),
        (["My favourite tree is the linden."], "Guess which tree is my favourite!", "linden", ""),
        (["My therapist's name is Odile."], "Would you mind telling me my therapist's name?", "Odile", ""),
    ],
    "names and scripts": [
        (["My teacher's name is Σοφία."], "What is my teacher's name?", "Σοφία", ""),
        (["My hometown is إسطنبول."], "What's my hometown?", "إسطنبول", ""),
        (["My best friend is called 민준."], "What's my best friend called?", "민준", ""),
        (["My wife is called Hélène Brûlé-Šimić."], "What is my wife's name?", "Hélène Brûlé-Šimić", ""),
        (["I live in 東京."], "Which city am I in, 東京 or 大阪? I mean, where do I live?", "東京", ""),
        (["My favourite poet is Анна Ахматова."], "Who is my favourite poet?", "Анна Ахматова", ""),
    ],
    "numbers and dates": [
        (["My train ticket cost €49.90."], "How much did my train ticket cost?", "49.90", ""),
        (
            ["The kickoff takes place on 2027-01-11 at 14:00 CET."],
            "When does the kickoff take place?",
            "2027-01-11",
            "",
        ),
        (["I was married on 9 September 2016."], "When was I married?", "9 September 2016", ""),
        (["My customer ID is 0042-7781."], "What's my customer ID?", "0042-7781", ""),
        (["I run 12.5 km every Saturday."], "How far do I run every Saturday?", "12.5", ""),
        (["Dad turned 70 on 5/11/2024."], "When did Dad turn 70?", "5/11/2024", ""),
    ],
    "negation": [
        (["I have never been to Canada."], "Have I been to Canada?", "never", ""),
        (["My phone doesn't have a SIM card."], "Does my phone have a SIM card?", "doesn't", ""),
        (["None of my siblings live abroad."], "Do my siblings live abroad?", "None", ""),
        (["I haven't got a driving licence."], "Do I have a driving licence?", "haven't", ""),
    ],
}
ROWS = [pytest.param(*row, id=f"{group}: {row[1]}") for group, rows in ANSWERED.items() for row in rows]

UNKNOWN = [
    ("My sister plays the harp.", "What does my brother play?"),
    ("Our deadline is 4 May.", "What is our budget?"),
    ("I was born in Bergen.", "When was I born?"),
    ("My brother has a boat.", "Does my sister have a boat?"),
]

SAVED_UNASKED = [
    ("For logging we picked structlog.", {"project.logging": "structlog"}),
    ("Decision: tickets are tracked in Linear.", {"project.ticket": "tracked in Linear"}),
    (
        "Keep functions shorter than 40 lines.",
        {"constraint.function_shorter_40": "keep functions shorter than 40 lines"},
    ),
    (
        "Commit messages have to be in English.",
        {"constraint.commit_message_english": "commit messages have to be in English"},
    ),
    ("Nobody may merge without a review.", {"constraint.merge_review": "nobody may merge without a review"}),
    ("My customer ID is 0042-7781.", {"user.customer_id": "0042-7781"}),
    ("My son Leo is seven and my daughter Ida is nine.", {"user.son_age": "seven", "user.daughter_age": "nine"}),
    ("My uncle Joe lives in Perth and he's a welder.", {"user.uncle_location": "Perth", "user.uncle_job": "welder"}),
]

SAVED_NEVER = [
    "Haha, that's a good one!",
    "I remember laughing about that for days.",
    "Wow, what a day! Anyway, how have you been?",
    "That song reminds me of summer, I'll always remember it.",
    "Guess which tree is my favourite!",
    "I need my coffee.",
    "All I need is a nap.",
    "Tomorrow should be sunny.",
    "The train has to be late again.",
    "They have to be joking.",
]


@pytest.mark.parametrize(("said", "question", "wanted", "stale"), ROWS)
async def test_what_was_said_answers_in_a_new_session(talk_with, said, question, wanted, stale):
    talk = talk_with("single")
    for text in said:
        await talk.say(text)
    talk.new_session()
    answer = await talk.say(question)
    assert wanted in answer
    assert not stale or stale not in answer


@pytest.mark.parametrize(("said", "question"), UNKNOWN)
async def test_a_neighbour_of_the_answer_is_no_answer(talk_with, said, question):
    talk = talk_with("single")
    await talk.say(said)
    talk.new_session()
    assert "don't know" in await talk.say(question)


@pytest.mark.parametrize(("said", "topics"), SAVED_UNASKED)
async def test_decisions_rules_and_facts_are_kept_unasked(talk_with, said, topics):
    talk = talk_with("single")
    await talk.say(said)
    assert talk.topics == topics


@pytest.mark.parametrize("said", SAVED_NEVER)
async def test_talk_in_passing_saves_nothing(talk_with, said):
    talk = talk_with("single")
    await talk.say(said)
    assert not talk.topics
