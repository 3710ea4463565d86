"""A results document cut down to what a later run is held against, fit to be kept in git."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.target import Json


def as_baseline(document: Json) -> Json:
    """Return `document` without steps, verdicts, tracebacks and times: outcomes, scores and rankings stay.

    What stories and memories said goes with the steps; a reason for failing may still quote them.
    """
    fingerprint = {**document["fingerprint"], "started": None}
    return {**document, "fingerprint": fingerprint, "cases": [_slim(case) for case in document["cases"]]}


def _slim(case: Json) -> Json:
    return {**_without(case), "trials": [_without(trial) for trial in case["trials"]]}


def _without(part: Mapping[str, Json]) -> dict[str, Json]:
    """Return a case or a trial of it; one that shows its evidence elsewhere has none to be cut."""
    empty: dict[str, Json] = {name: [] for name in ("steps", "verdicts") if name in part}
    cut = {"retrieval": [_record(record) for record in part["retrieval"]]} if "retrieval" in part else {}
    failure = part.get("failure")
    # A traceback names folders of the machine that it comes from.
    told = {"failure": {**failure, "detail": None}} if failure else {}
    return {**part, **empty, **cut, **told, "seconds": 0.0}


def _record(record: Json) -> Json:
    without = {"seconds": 0.0, "embedding_seconds": None}
    return {**record, **without, "questions": [{**asked, **without} for asked in record["questions"]]}
