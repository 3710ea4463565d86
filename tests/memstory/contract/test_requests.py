"""Operations as data: each can cross to another process."""

from inspect import iscoroutinefunction

from memstory.contract.requests import REQUESTS
from memstory.contract.target import Target

OF_THE_CONNECTION = {"open", "close", "perform"}


def test_every_operation_of_a_target_has_a_request():
    operations = {name for name, method in vars(Target).items() if iscoroutinefunction(method)}
    assert REQUESTS.keys() == operations - OF_THE_CONNECTION
