"""Plays a program on an open memory, and stops at the first answer that breaks a promise."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Query, Receipt, Ref, Request, Scope, Target
from memstory.contract.values import Capability, Item
from memstory.exploring.model import Model, Violation, subject_of
from memstory.exploring.programs import OWNER, Action, Program
from memstory.running.stage import Stage

OPERATION_SECONDS: Final = 30.0
"""How long one operation may take."""


class Moot(Exception):  # noqa: N818  (no error: a shrunk program no longer stores what the operation names)
    """An operation on a memory that the program does not store."""


@dataclass(slots=True, kw_only=True)
class Playthrough:
    """What came of a program: the violation, if one, and the place of the operation that showed it.

    `counts` has how often each operation was done; `untried` how often the memory declined one or could not do it.
    """

    violation: Violation | None = None
    place: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    untried: Counter[str] = field(default_factory=Counter)


async def play_program(program: Program, stage: Stage, able: frozenset[Capability], mark: str = "") -> Playthrough:
    """Play a program on an open stage; `mark` is put into the names of its users, so that they are new there."""
    played, model = Playthrough(), Model(able=able)
    for place, operation in enumerate(program.operations):
        played.place = place
        second = None if operation.second is None else own_name(operation.second, mark)
        own = replace(operation, user=own_name(operation.user, mark), second=second)
        scope = stage.scope(own.user, own.session, in_session=False)
        try:
            async with asyncio.timeout(OPERATION_SECONDS):
                answer = await _perform(own, scope, stage, model)
        except Moot:
            continue
        except (Refused, NotSupported) as error:
            is_owed, violation = model.may_refuse(own), model.refuse(own)
            if is_owed:
                continue
            if violation is not None and isinstance(error, Refused):
                played.violation = violation
                return played
            kind = "refused" if isinstance(error, Refused) else "not supported"
            played.untried[f"{operation.op}: {kind}"] += 1
            continue
        except Exception as error:  # noqa: BLE001  (the rim: whatever a backend raises is a broken promise)
            if isinstance(error, TargetError) and "kind" in own.all_tags:
                # Which kinds there are is the memory's own; a server has but an error to say so.
                model.refuse(own)
                played.untried[f"{operation.op}: refused"] += 1
                continue
            says = f"{operation.op}: {type(error).__name__}: {' '.join(str(error).split())}"
            played.violation = Violation(promise="answers", says=says[:300])
            return played
        played.counts[operation.op] += 1
        played.violation = model.judge(own, answer, stage.clock.now())
        if played.violation is not None:
            return played
    return played


def own_name(user: str, mark: str) -> str:
    """Return a user's name with a mark in it that makes it another user, as odd as before."""
    if not mark:
        return user
    place = user.casefold().find(OWNER)
    if place < 0 or len(user.casefold()) != len(user):
        return f"{user}{mark}"
    return f"{user[:place]}{user[place : place + len(OWNER)]}{mark}{user[place + len(OWNER) :]}"


async def _perform(operation: Action, scope: Scope, stage: Stage, model: Model) -> Any:
    match operation.op:
        case "restart":
            return await stage.reopen()
        case "crash":
            await stage.kill()
            return await stage.revive()
        case "advance":
            return await stage.move_to(stage.clock.now() + timedelta(seconds=operation.seconds))
        case _:
            pass
    if operation.elsewhere:
        stage = await stage.open_other()
    if operation.op == "add" and operation.at_once:
        return await _add_at_once(operation, scope, stage)
    answer = await stage.target.perform(request_of(operation, scope, model))
    if operation.op in ("add", "update"):
        await stage.settle()
    return answer


async def _add_at_once(operation: Action, scope: Scope, stage: Stage) -> Receipt:
    second = scope if operation.second is None else stage.scope(operation.second, operation.session, in_session=False)
    adding = (
        stage.target.perform(Request.of(Target.add, [memo.item], second if place % 2 else scope))
        for place, memo in enumerate(operation.memos)
    )
    receipts = await asyncio.gather(*adding, return_exceptions=True)
    for receipt in receipts:
        if isinstance(receipt, BaseException):
            raise receipt
    await stage.settle()
    return Receipt(items=[one for receipt in receipts if isinstance(receipt, Receipt) for one in receipt.items])


def request_of(operation: Action, scope: Scope, model: Model) -> Request[Any]:
    """Return the call of an operation; the model knows the ids that the memory gave."""
    if operation.op == "add":
        return Request.of(Target.add, [memo.item for memo in operation.memos], scope)
    if operation.op == "list":
        return Request.of(Target.list, scope, (), operation.limit)
    if operation.op == "delete all":
        return Request.of(Target.delete, Ref(), scope)
    if operation.op in ("search", "context"):
        query = Query(text=operation.text, top_k=operation.limit, where=dict(operation.where))
        return Request.of(Target.search if operation.op == "search" else Target.context, query, scope)
    return _request_on_one(operation, scope, model)


def _request_on_one(operation: Action, scope: Scope, model: Model) -> Request[Any]:
    named = [one for one in map(model.memory, filter(None, (operation.memory, operation.more))) if one is not None]
    if not named or any(one.state == "refused" for one in named):
        raise Moot
    new = operation.memos[0].item if operation.memos else Item(text="")
    if operation.by == "about":
        subjects = [subject for one in named if (subject := subject_of(one.item.text)) is not None]
        if len(subjects) < len(named):
            raise Moot
        if operation.op == "delete":
            return Request.of(Target.delete_about, subjects, scope, durable=operation.durable)
        return Request.of(Target.update_about, subjects, new, scope)
    ref = Ref(key=named[0].item.key) if operation.by == "key" else Ref(id=named[0].id)
    if ref == Ref():
        raise Moot
    if operation.op == "update":
        return Request.of(Target.update, ref, new, scope)
    if operation.op == "delete":
        return Request.of(Target.delete, replace(ref, durable=operation.durable), scope)
    return Request.of(Target.get, ref, scope)
