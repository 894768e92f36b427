"""An AdmissionReview of the API server -> its answer: the findings of lint as warnings. Pure.

Nobody is kept from working by us: only the creation of an object with errors can be refused, and only where
that was asked for; a change of an object that is there is never refused, since its controllers have to go on
writing it, however it was made. What cannot be understood is allowed.

Source: Kubernetes admission.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.intake import bodies
from mindie_ha.intake.lints.checking import RULES, check
from mindie_ha.intake.lints.remarks import Remark, Weight
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.model.errors import InputError

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
WHERE = "admission review"
MAX_WARNINGS = 15
MAX_WARNING = 250  # characters; kubectl shows no more well, and the API server keeps 4096 of all


@dataclass(frozen=True, slots=True)
class Asked:
    """What an AdmissionReview asks."""

    uid: str
    operation: str
    subject: Subject | None  # None: nothing that can be judged


def read(body: Mapping[str, object]) -> Asked:
    """The question in `body`. Raises InputError where it is none."""
    if body.get("kind") != KIND or body.get("apiVersion") != API_VERSION:
        raise InputError(f"is no {KIND} of {API_VERSION}", where=WHERE)
    request = bodies.as_object(body.get("request"), where=f"{WHERE}.request")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid or len(uid) > 128:
        raise InputError("has no uid", where=f"{WHERE}.request")
    operation, found = request.get("operation"), request.get("object")
    return Asked(uid, str(operation)[:16], _subject(found, request) if isinstance(found, dict) else None)


def answer(asked: Asked, *, enforce: bool) -> dict[str, object]:
    """The AdmissionReview to send back. `enforce`: refuse to create what has errors."""
    remarks = check(asked.subject).remarks if asked.subject is not None else ()
    told = [remark for remark in remarks if remark.weight is not Weight.NOTE]
    errors = [remark for remark in told if remark.weight is Weight.ERROR]
    response: dict[str, object] = {"uid": asked.uid, "allowed": True}
    if enforce and errors and asked.operation == "CREATE":
        response["allowed"] = False
        response["status"] = {"code": 422, "reason": "Invalid", "message": _message(errors)}
    elif told:
        response["warnings"] = [_short(remark) for remark in told[:MAX_WARNINGS]]
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _subject(found: dict[str, object], request: Mapping[str, object]) -> Subject | None:
    metadata = found.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    subject = Subject(
        file="",
        kind=str(found.get("kind"))[:64],
        namespace=str(request.get("namespace") or "")[:253],
        name=str(names.get("name") or names.get("generateName") or "")[:253],
        body=found,
    )
    return subject if any(rules.knows(subject) for rules in RULES) else None


def _short(remark: Remark) -> str:
    text = f"{remark.weight}: {remark.where}: {remark.what} ({remark.advice}) [{remark.code}]"
    return text if len(text) <= MAX_WARNING else f"{text[: MAX_WARNING - 1]}…"


def _message(errors: list[Remark]) -> str:
    more = f"; and {len(errors) - 5} more" if len(errors) > 5 else ""
    return "mindie-ha lint: " + "; ".join(_short(remark) for remark in errors[:5]) + more
