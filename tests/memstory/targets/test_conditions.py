import pytest

from memstory.contract.errors import NotSupported
from memstory.contract.target import Query, Scope
from memstory.targets.conditions import refuse_undeclared

ANYWHERE, SESSION = Scope(user="ann"), Scope(user="ann", session="one")
ASKED = [
    ("scope.session", Query(text="tea"), SESSION),
    ("search.min_score", Query(text="tea", min_score=0.0), ANYWHERE),
    ("search.budget", Query(text="tea", token_budget=0), ANYWHERE),
    ("search.where", Query(text="tea", where={"n": 1}), ANYWHERE),
    ("search.where", Query(text="tea", kinds=("fact",)), ANYWHERE),
]
EVERYTHING = frozenset(capability for capability, _, _ in ASKED)


@pytest.mark.parametrize(("capability", "query", "scope"), ASKED)
def test_a_condition_is_refused_by_the_name_of_what_is_not_declared(capability, query, scope):
    with pytest.raises(NotSupported, match=capability):
        refuse_undeclared(query, scope, EVERYTHING - {capability})


@pytest.mark.parametrize(("capability", "query", "scope"), ASKED)
def test_a_condition_that_is_declared_is_let_through(capability, query, scope):
    refuse_undeclared(query, scope, frozenset({capability}))


def test_a_search_without_conditions_asks_for_nothing():
    refuse_undeclared(Query(text="tea", top_k=3), ANYWHERE, frozenset())
