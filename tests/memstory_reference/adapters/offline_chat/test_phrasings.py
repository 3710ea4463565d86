"""How people say things: each row is one way, grouped by what is meant."""

from __future__ import annotations

import pytest

SAVES = {
    "preferences": [
        ("Please remember my preferred language is Elixir.", {"user.language_preference": "Elixir"}),
        ("My favourite editor is Helix.", {"user.editor_preference": "Helix"}),
        ("My favorite author's Ursula Le Guin", {"user.author_preference": "Ursula Le Guin"}),
        ("Emacs is my editor of choice.", {"user.editor_preference": "Emacs"}),
        ("I prefer tea over coffee", {"user.drink_preference": "tea"}),
        (
            "I'd rather have window seats on flights, please note that.",
            {"user.seat_preference": "window seats on flights"},
        ),
        ("The tea I like best is Assam.", {"user.tea_preference": "Assam"}),
        ("I like Vim more than Emacs", {"user.editor_preference": "Vim"}),
        ("I like my coffee black", {"user.coffee_preference": "black"}),
        ("I want you to know that I prefer short answers.", {"user.answer_preference": "short answers"}),
        ("Just a heads up: my favourite snack is popcorn.", {"user.snack_preference": "popcorn"}),
        ("My two favourite colours are red and teal", {"user.colour_preference": "red and teal"}),
        ("My favorite color is teal, ok?", {"user.color_preference": "teal"}),
    ],
    "personal facts": [
        ("my name is Ana", {"user.name": "Ana"}),
        ("Hi, I'm Ana.", {"user.name": "Ana"}),
        ("People call me Sam", {"user.name": "Sam"}),
        ("I've moved to Vienna.", {"user.location": "Vienna"}),
        ("My partner and I live in Oslo", {"user.location": "Oslo"}),
        ("I'm originally from Porto", {"user.origin": "Porto"}),
        ("I'm a software developer.", {"user.job": "software developer"}),
        ("I was born on 3 May", {"user.birthday": "3 May"}),
        ("Don't forget that I am allergic to peanuts.", {"user.allergy": "peanuts"}),
        ("I have a dog named Rex", {"user.dog_name": "Rex"}),
        ("I've got two sisters.", {"user.sister": "two sisters"}),
        ("I am a vegetarian", {"user.diet": "vegetarian"}),
        ("Keep this in mind: I am colour-blind.", {"user.colour_blind": "I am colour-blind"}),
        ("My e-mail address is ana@example.org", {"user.email": "ana@example.org"}),
        ("I'd like you to remember that Kim is my manager.", {"user.manager": "Kim"}),
        ("You should address me as Dr. Novak.", {"user.name": "Dr. Novak"}),
        ("I've lived in Lisbon since 2015.", {"user.location": "Lisbon"}),
        ("I'm lactose intolerant", {"user.lactose_intolerant": "I'm lactose intolerant"}),
        ("I recently adopted a puppy called Biscuit.", {"user.puppy_name": "Biscuit"}),
        ("My anniversary is the 12th of October, don't forget!", {"user.anniversary": "the 12th of October"}),
        ("My name isn't Bob, it's Rob.", {"user.name": "Rob"}),
        ("I'm going by Alex from now on.", {"user.name": "Alex"}),
        ("my fav drink is mate", {"user.drink_preference": "mate"}),
        ("The wifi password is hunter2, please remember that.", {"user.wifi_password": "hunter2"}),
    ],
    "third persons": [
        ("My sister's name is Ilse, keep that.", {"user.sister_name": "Ilse"}),
        ("my sister is called Ana", {"user.sister_name": "Ana"}),
        ("My brother is a pilot", {"user.brother_job": "pilot"}),
        ("My sister, Ana, lives in Porto.", {"user.sister_location": "Porto"}),
        ("My mother's maiden name is Côté-O’Neil", {"user.mother_maiden_name": "Côté-O’Neil"}),
        ("My cat Miso is 3 years old", {"user.cat_age": "3"}),
    ],
    "project decisions": [
        ("We decided to use Postgres.", {"project.database": "Postgres"}),
        ("We've chosen FastAPI for the backend.", {"project.backend": "FastAPI"}),
        ("We went with Hetzner as our cloud provider", {"project.cloud_provider": "Hetzner"}),
        ("Let's use pytest for testing.", {"project.testing": "pytest"}),
        ("We have decided that all timestamps are UTC.", {"project.timestamp": "UTC"}),
        ("The project deadline is 2026-03-14.", {"project.deadline": "2026-03-14"}),
        ("Note that the project's due date is 14 March.", {"project.deadline": "14 March"}),
        ("Our stand-up was moved to 9:45.", {"project.standup": "9:45"}),
        ("The release date has moved from 3 May to 10 May.", {"project.release_date": "10 May"}),
        ("Our standup is at 9:30.", {"project.standup": "9:30"}),
        ("We deploy every Tuesday.", {"project.deploy": "every Tuesday"}),
        ("Keep in mind that our budget is 40,000 euros.", {"project.budget": "40,000 euros"}),
    ],
    "constraints": [
        ("Never use tabs.", {"constraint.tab": "never use tabs"}),
        ("Please don't use emojis in your answers.", {"constraint.emoji": "don't use emojis in your answers"}),
        ("From now on, answer in French.", {"constraint.answer_french": "answer in French"}),
        ("Please use metric units from now on.", {"constraint.metric_unit": "use metric units"}),
        ("No deploys on Fridays.", {"constraint.deploy_friday": "no deploys on Fridays"}),
        (
            "You must not push to main on Fridays.",
            {"constraint.push_main_friday": "you must not push to main on Fridays"},
        ),
        (
            "No more than three sentences per answer, please.",
            {"constraint.three_sentence_per": "no more than three sentences per answer"},
        ),
        ("Use spaces, not tabs.", {"constraint.space_tab": "use spaces, not tabs"}),
        ("Always answer in one sentence.", {"constraint.answer_sentence": "always answer in one sentence"}),
    ],
    "two facts": [
        ("My name is Ana and I live in Graz.", {"user.name": "Ana", "user.location": "Graz"}),
        ("I'm Jürgen, I'm 52, and I come from Köln.", {"user.name": "Jürgen", "user.age": "52", "user.origin": "Köln"}),
        ("I live in Graz and work at Siemens", {"user.location": "Graz", "user.employer": "Siemens"}),
        ("I work at Siemens as an engineer", {"user.employer": "Siemens", "user.job": "engineer"}),
        ("My sister is called Ana and my dog Rex", {"user.sister_name": "Ana", "user.dog_name": "Rex"}),
        (
            "My wife's birthday is June 3rd and my son's is August 9th.",
            {"user.wife_birthday": "June 3rd", "user.son_birthday": "August 9th"},
        ),
        (
            "I'm Tomás and I'm a teacher from Seville",
            {"user.name": "Tomás", "user.job": "teacher", "user.origin": "Seville"},
        ),
        (
            "Please remember these two things: my badge number is 778 and my desk is on floor 4.",
            {"user.badge_number": "778", "user.desk": "on floor 4"},
        ),
        (
            "My manager is called Ingrid and she likes short updates.",
            {"user.manager_name": "Ingrid", "user.manager_update_preference": "My manager likes short updates"},
        ),
        ("I am 41 and my wife is 39.", {"user.age": "41", "user.wife_age": "39"}),
        (
            "My favourite number is 7. My favourite colour is green.",
            {"user.number_preference": "7", "user.colour_preference": "green"},
        ),
    ],
    "one fact with an and": [
        ("My favourite band is Simon and Garfunkel", {"user.band_preference": "Simon and Garfunkel"}),
        ("My kids are called Mia and Ben.", {"user.kid_name": "Mia and Ben"}),
        ("Our stack is Django and React.", {"project.stack": "Django and React"}),
    ],
    "names and scripts": [
        ("My name is 张伟 and I live in 北京.", {"user.name": "张伟", "user.location": "北京"}),
        ("My name is Ольга", {"user.name": "Ольга"}),
        ("My favourite dish is 麻婆豆腐, remember that!", {"user.dish_preference": "麻婆豆腐"}),
        ("My landlord is called Herr Özgür.", {"user.landlord_name": "Herr Özgür"}),
        ("I live in St. Gallen.", {"user.location": "St. Gallen"}),
    ],
    "numbers and dates": [
        ("My phone number is +43 660 1234567.", {"user.phone_number": "+43 660 1234567"}),
        ("My shoe size is 43", {"user.shoe_size": "43"}),
        ("Would you please remember my locker number is 4711?", {"user.locker_number": "4711"}),
        ("Jot down that the router admin page is 192.168.0.1", {"user.router_admin_page": "192.168.0.1"}),
        ("Don't forget: rent is due on the 1st.", {"user.rent_deadline": "the 1st"}),
        ("I usually get up at 6:15", {"user.get_up": "6:15"}),
    ],
    "negation": [
        ("I don't drink coffee.", {"user.drink_coffee": "I don't drink coffee"}),
        ("I'm not married", {"user.married": "I'm not married"}),
        ("I no longer live in Graz", {"user.location": "I no longer live in Graz"}),
        ("I can't stand cilantro.", {"user.cilantro_preference": "I can't stand cilantro"}),
        ("I can't eat gluten.", {"user.eat_gluten": "I can't eat gluten"}),
        ("I do not have any pets", {"user.pet": "I do not have any pets"}),
        ("I never work on Sundays", {"user.work_sunday": "I never work on Sundays"}),
    ],
}

SAVES_NOTHING = [
    "Hello!",
    "Good morning! How are you today?",
    "Thanks a lot",
    "Nice weather today, isn't it?",
    "It's raining here.",
    "I'm tired.",
    "I had a nice lunch today.",
    "My train is late",
    "My head is aching.",
    "My sister says that I live in Graz.",
    "If I were rich I would buy a boat.",
    "I used to live in Paris.",
    "I remember my school days fondly.",
    "I remember when we first met",
    "Remember when we went to Rome?",
    "I forgot my umbrella",
    "I'm not a morning person",
    "I like this.",
    "I love your answer",
    "Never mind.",
    "Forget it.",
    "Don't worry about it",
    "No problem!",
    "No thanks.",
    "Today is my birthday",
    "Tell me a joke",
    "I'm going to the store now.",
    "That makes sense.",
    "The capital of Australia is Canberra, not Sydney.",
    "The Zorvane relay's code name is Plimquart.",
    "私の名前は太郎です",
    "",
]

PAIRS = [
    ("My preferred programming language is OCaml", "What language do I prefer?"),
    ("My favourite editor is Helix", "Could you tell me which editor I like?"),
    ("My favourite editor is Helix", "Do you happen to know which editor is my favourite?"),
    ("My favourite editor is Helix", "what's my go-to editor"),
    ("My favourite colour is teal", "I wonder what my favourite colour is"),
    ("My name is Ana", "Who am I?"),
    ("My name is Ana", "Can you remember what my name is?"),
    ("You can call me Ana", "What should you call me?"),
    ("My sister is called Ana", "What's my sister's name?"),
    ("My sister's name is Ana", "What is my sister called?"),
    ("The name of my dog is Rex", "Do you remember my dog's name?"),
    ("I have a dog called Rex", "What is the name of my dog?"),
    ("I live in Graz", "Where do I live?"),
    ("I'm based in Graz", "Which city do I live in?"),
    ("I come from Porto", "Where am I from?"),
    ("I work for Siemens", "Who do I work for?"),
    ("I work as a nurse", "What do I do for a living?"),
    ("I'm 34", "How old am I?"),
    ("My wife is 39", "How old is my wife?"),
    ("My daughter was born on 5 July 2019", "When was my daughter born?"),
    ("I'm allergic to peanuts", "What am I allergic to?"),
    ("I'm allergic to peanuts", "Do I have any allergies?"),
    ("I have two kids", "How many kids do I have?"),
    ("I don't drink coffee", "Do I drink coffee?"),
    ("I hate mushrooms", "Do I like mushrooms?"),
    ("I like my tea with lemon", "How do I like my tea?"),
    ("I get up at 6:15", "When do I get up?"),
    ("We decided on Postgres", "Which database did we decide on?"),
    ("We decided to use Redis for caching", "What did we decide about caching?"),
    ("My dog's name is Pixel", "do u remember my dogs name"),
    ("My timezone is UTC+2", "What timezone am I in?"),
    ("I weigh 72 kilos", "How much do I weigh?"),
    ("The project deadline is 14 March", "When is the deadline?"),
    ("The project is due on 14 March", "When is our project due?"),
    ("We ship on 3 May", "When do we ship?"),
    ("Our client is Acme", "Who's the client?"),
    ("Never use tabs", "May I use tabs?"),
    ("No deploys on Fridays", "What's the rule about deploying on Fridays?"),
    ("Emojis are forbidden", "Are emojis allowed?"),
    ("My e-mail address is ana@example.org", "Remind me of my email, please"),
    ("Please remember that the spare key is under the flower pot", "Where is the spare key?"),
]

CORRECTIONS = [
    ("My preferred language is Elixir", "Actually it is Rust now.", "What language do I prefer?", "Rust", "Elixir"),
    ("My preferred language is Elixir", "No, I meant Rust.", "What language do I prefer?", "Rust", "Elixir"),
    ("My preferred language is Elixir", "It's Rust now, not Elixir.", "What language do I prefer?", "Rust", "Elixir"),
    (
        "The project deadline is 14 March",
        "Make that 15 March instead.",
        "When is the deadline?",
        "15 March",
        "14 March",
    ),
    (
        "The project deadline is 14 March",
        "Correction: the deadline is 20 April.",
        "When is the deadline?",
        "20 April",
        "14 March",
    ),
    (
        "The project deadline is 14 March",
        "Sorry, my deadline is 15 April",
        "When is the deadline?",
        "15 April",
        "14 March",
    ),
    ("My favourite colour is red", "Scratch that, blue.", "What's my favourite colour?", "blue", "red"),
    ("My favourite colour is red", "Change my favourite colour to blue", "What's my favourite colour?", "blue", "red"),
    ("The meeting is on Friday.", "Actually, it's on Thursday now.", "When is the meeting?", "Thursday", "Friday"),
    ("Our deadline is Friday.", "The deadline got pushed to Monday.", "When is our deadline?", "Monday", "Friday"),
    ("I prefer coffee", "I've changed my mind, I prefer tea now.", "Do I prefer tea or coffee?", "tea", "coffee"),
    ("I live in Graz", "I've moved to Vienna.", "Where do I live?", "Vienna", "Graz"),
]

SAVING = [pytest.param(text, facts, id=text) for group in SAVES.values() for text, facts in group]


@pytest.mark.parametrize(("text", "facts"), SAVING)
async def test_what_is_to_be_kept_is_saved_under_its_topic(talk_with, text, facts):
    talk = talk_with("single")
    answer = await talk.say(text)
    assert talk.topics == facts
    assert "remember" in answer.lower()


@pytest.mark.parametrize("text", SAVES_NOTHING)
@pytest.mark.parametrize("toolset", ["single", "dual"])
async def test_small_talk_and_the_world_save_nothing(talk_with, text, toolset):
    talk = talk_with(toolset)
    assert await talk.say(text)
    assert not talk.topics
    assert not talk.called("save_memory")


@pytest.mark.parametrize("toolset", ["single", "dual"])
@pytest.mark.parametrize(("statement", "question"), PAIRS)
async def test_a_question_reads_the_topic_of_its_statement(talk_with, statement, question, toolset):
    talk = talk_with(toolset, ingests=False)
    await talk.say(statement)
    ((topic, value),) = talk.topics.items()
    talk.new_session()
    answer = await talk.say(question)
    assert {"topic": topic} in talk.called("recall_topic", "memory_recall")
    assert value.rstrip(".") in answer


@pytest.mark.parametrize(("statement", "correction", "asked"), [(*row[:2], row[2:]) for row in CORRECTIONS])
async def test_a_correction_replaces_the_value_of_its_topic(talk_with, statement, correction, asked):
    question, new, old = asked
    talk = talk_with("single")
    await talk.say(statement)
    await talk.say(correction)
    assert len(talk.topics) == 1
    talk.new_session()
    answer = await talk.say(question)
    assert new in answer
    assert old not in answer


@pytest.mark.parametrize(
    "text", ["Actually, I'm tired.", "It is late now.", "No, thanks", "Wait, what?", "Actually that's fine"]
)
async def test_talk_after_a_fact_corrects_nothing(talk_with, text):
    talk = talk_with("single")
    await talk.say("My preferred language is Elixir")
    await talk.say(text)
    assert talk.topics == {"user.language_preference": "Elixir"}


@pytest.mark.parametrize(
    "question",
    [
        "What is my dog's name?",
        "Where does my brother live?",
        "What is my passport number?",
        "What colour is my car?",
        "Which port does the Falcon server use?",
        "What is Marta's phone number?",
        "When is my sister's wedding?",
        "Do you know the capital of Peru?",
        "Who wrote Faust?",
        "Have I been to Japan?",
        "What do you remember about the Quillon valve?",
    ],
)
async def test_a_question_without_an_answer_is_looked_up_and_said_to_be_unknown(talk_with, question):
    talk = talk_with("single")
    for text in (
        "My cat's name is Tom.",
        "My sister lives in Rome, and her bike is red.",
        "My phone number is 555-0101.",
        "The Kestrel server listens on port 8443.",
        "Marta from accounting retires in July.",
    ):
        await talk.say(text)
    talk.new_session()
    answer = await talk.say(question)
    assert talk.called("search_memory")
    assert "don't know" in answer
