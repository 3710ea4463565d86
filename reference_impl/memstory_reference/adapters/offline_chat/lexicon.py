# ruff: noqa: SIM905  (words read best as running text)
"""The words that the rules know: English function words and a few common kinds of things, no facts."""

from __future__ import annotations

_STOP = """
a about again all also am an and any anything are as at be been being by can could did do does doing done for from
had has have having he her here hers him his how i if in into is it its just know like may me might mine more most
much must my myself no not now of off on once one or our ours out over own please recall remember said say she should
so some something tell than that the their them then there these they thing this those to told too under until up us
upon very was we were what when where which while who whom whose why will with would yes you your yours ever still
really
""".split()
STOP_WORDS = frozenset(_STOP)
"""Words that say nothing about what a sentence is about."""

PREFERRED_KINDS = frozenset(
    "language editor database framework colour color drink food dish meal snack band song album singer film movie book "
    "author sport team animal season game tea coffee beer wine restaurant city country hobby font theme".split()
)
"""Kinds of things that `my …` may mean as `my favourite …`."""

PLAIN_ATTRIBUTES = frozenset("name call age time date day kind type favourite favorite prefer preferred use".split())
"""Words that fit many facts: sharing only one of them is no evidence that a memory answers a question."""

KEY_NOISE = frozenset(
    "a an the own current currently new newest latest actual actually real exact present really very again also "
    "still personal that this".split()
)
"""Words that do not change which fact is meant, left out of topic keys."""

PROJECT_WORDS = frozenset(
    "project team deadline release launch sprint milestone stack backend frontend database db repo repository "
    "codebase branch build budget roadmap staging production deployment api standup retro kickoff client framework "
    "linter formatter test server pipeline ci deliverable stakeholder product".split()
)
"""A thing of one of these kinds, said with `the`, belongs to the project."""

PASSING = frozenset(
    "day week weekend morning afternoon evening night head back stomach lunch dinner breakfast train bus flight mood "
    "weather trip nap walk question point guess turn bad fault pleasure problem".split()
)
"""What somebody says of these holds for a moment: `my train is late`."""

PASSING_STATES = frozenset(
    "tired hungry thirsty fine good great ok okay well bad sad happy bored busy sick ill late early back here there "
    "ready sorry sure afraid glad excited done stuck lost confused cold hot sleepy free awake home alright curious "
    "amazing awful terrible lovely nice wonderful aching hurting broken empty full missing gone delayed".split()
)
"""What somebody is for a moment."""

RELATIVES = frozenset(
    "wife husband partner spouse son daughter brother sister mother father mom mum dad child kid baby friend boyfriend "
    "girlfriend nephew niece aunt uncle cousin grandmother grandfather grandma grandpa twin cat dog pet horse".split()
)
"""Those of whom a bare number is the age."""

TRAITS = frozenset(
    "married single divorced engaged retired left-handed right-handed colour-blind color-blind colourblind deaf blind "
    "dyslexic diabetic pregnant lactose-intolerant introverted extroverted bilingual".split()
)
DIETS = frozenset("vegan vegetarian pescatarian kosher halal celiac coeliac omnivore".split())

JOBS = frozenset(
    "nurse pilot chef cook doctor lawyer judge student vet monk clerk architect physicist chemist surgeon paramedic "
    "programmer mechanic plumber researcher analyst accountant consultant assistant musician coach model midwife "
    "firefighter electrician apprentice intern secretary soldier guard guide host magician".split()
)
JOB_ENDINGS = ("er", "or", "ist", "ian", "eer", "smith", "wright", "man", "woman")
NO_JOBS = frozenset(
    "person fan user lover member owner speaker beginner night morning number winner loser brother sister mother "
    "father "
    "daughter believer reader drinker eater sleeper bother human woman man foreigner newcomer teenager dreamer".split()
)

NATIONALITIES = frozenset(
    "german french spanish italian american british english irish scottish welsh dutch swiss austrian australian "
    "canadian mexican brazilian indian chinese japanese korean russian ukrainian polish czech swedish norwegian danish "
    "finnish greek turkish portuguese hungarian romanian croatian serbian slovenian egyptian nigerian kenyan israeli "
    "vietnamese thai indonesian argentinian chilean colombian peruvian belgian".split()
)

KINDS = {
    "language": "python rust elixir java kotlin javascript typescript ruby go golang haskell scala clojure swift julia "
    "perl php erlang ocaml zig lua c++ c# fortran cobol nim gleam".split(),
    "editor": "vim neovim emacs helix vscode nano zed sublime intellij pycharm".split(),
    "database": "postgres postgresql mysql mariadb sqlite mongodb redis cassandra duckdb clickhouse".split(),
    "framework": "django flask fastapi rails phoenix react vue svelte angular spring laravel".split(),
    "operating_system": "linux windows macos ubuntu debian fedora nixos freebsd".split(),
    "colour": "red green blue yellow orange purple pink brown black white grey gray teal turquoise violet".split(),
    "drink": "tea coffee water juice beer wine cocoa lemonade milk".split(),
}
_PASTS = """
grow grew grown|go went gone|buy bought|meet met|teach taught|build built|choose chose chosen|write wrote written|
make made|begin began begun|run ran|sing sang sung|drive drove driven|speak spoke spoken|take took taken|leave left|
lose lost|win won|sell sold|keep kept|spend spent|find found|fly flew flown|ride rode ridden|come came|break broke
broken|eat ate eaten|drink drank drunk|see saw seen|feel felt|pay paid|give gave given|hear heard|hold held|know knew
known|send sent|sleep slept|swim swam swum|think thought|wear wore worn|bring brought|catch caught|fall fell fallen|
forget forgot forgotten|lend lent|rise rose risen|get got gotten|become became
"""
IRREGULAR_PASTS = {past: verb for verb, *pasts in (row.split() for row in _PASTS.split("|")) for past in pasts}
"""Past forms that no ending tells: `I grew up in Graz` answers `Where did I grow up?`."""

KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
"""Common names and their kind, so that `I prefer Elixir` and `which language do I prefer` meet in one key."""

SAME_WORDS = {
    "favourite": "preference",
    "favorite": "preference",
    "fave": "preference",
    "preferred": "preference",
    "launch": "release",
    "ship": "release",
    "db": "database",
    "repo": "repository",
    "profession": "job",
    "occupation": "job",
    "e-mail": "email",
    "residence": "location",
    "home town": "hometown",
    "diets": "diet",
    "allergies": "allergy",
    "os": "operating_system",
}
"""Words that mean the same fact, in keys."""
