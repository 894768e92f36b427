"""`remain-retry-times` in ConfigMap `volcano-system/vcjob-fault-npu-cm`: keeps the Ascend Operator trying.

Volcano's plugin dumps it whole; the operator reads one entry per job, `<ns>/<name>-<uid>` -> `{UUID, Times}`.
Where nobody writes an entry we do (`granted`), with a mark that its readers ignore; one without our mark is
never touched.

Source: rescheduling contract §1.3, §2.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from mindie_ha.model.errors import InputError
from mindie_ha.policy.retries import RETRY_KEY

_UID_LENGTH = 36
_MARK = "WrittenBy"


@dataclass(frozen=True, slots=True)
class Retries:
    """One entry: restarts that remain, and whether we wrote it."""

    times: int
    ours: bool


def parse_retries(text: str, *, where: str) -> dict[str, Retries]:
    """By entry name; a malformed entry costs itself only, InputError where the whole is no map."""
    found = {}
    for name, body in _entries(text, where).items():
        times = body.get("Times") if isinstance(body, dict) else None
        if type(times) is int:
            found[name] = Retries(times, _is_ours(body))
    return found


def granted(text: str | None, *, entry: str, job_uid: str, times: int) -> str | None:
    """The text with our entry added or renewed; None where it is somebody else's or the text is malformed."""
    try:
        entries = _entries(text or "", RETRY_KEY)
    except InputError:
        return None
    if entry in entries and not _is_ours(entries[entry]):
        return None
    entries[entry] = {"UUID": job_uid, "Times": times, _MARK: "mindie-ha"}
    try:
        return orjson.dumps(entries).decode()
    except orjson.JSONEncodeError:  # an entry of others is nested deeper than can be written again
        return None


def job_of(entry: str) -> str:
    """`<ns>/<name>` of an entry; empty where it has another shape."""
    name = entry[: -_UID_LENGTH - 1]
    return name if "/" in name else ""


def _is_ours(body: object) -> bool:
    return isinstance(body, dict) and body.get(_MARK) == "mindie-ha"


def _entries(text: str, where: str) -> dict[str, object]:
    if not text.strip():
        return {}
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{RETRY_KEY} is no JSON: {error}", where=where) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{RETRY_KEY} is no JSON object", where=where)
    return content


__all__ = ["Retries", "granted", "job_of", "parse_retries"]
