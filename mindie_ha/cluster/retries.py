"""`remain-retry-times` in ConfigMap `volcano-system/vcjob-fault-npu-cm`: keeps the Ascend Operator trying.

Volcano's plugin dumps it whole; the operator reads one entry per job, `<ns>/<name>-<uid>` -> `{UUID, Times}`.
Where nobody writes an entry we do (`granted`), and never touch one that stands.

Source: rescheduling contract §1.3, §2.6.
"""

from __future__ import annotations

import orjson

from mindie_ha.model.errors import InputError

RETRIES_KEY = "remain-retry-times"
_UID_LENGTH = 36


def parse_retries(text: str, *, where: str) -> dict[str, int]:
    """Entry -> Times; a malformed entry costs itself only, InputError where the whole is no map."""
    times = {
        name: body.get("Times") for name, body in _entries(text, where).items() if isinstance(body, dict)
    }
    return {name: count for name, count in times.items() if type(count) is int}


def granted(text: str | None, *, entry: str, job_uid: str, times: int) -> str | None:
    """The text with our entry added; None where one stands or the text is malformed (not ours to mend)."""
    try:
        entries = _entries(text or "", RETRIES_KEY)
    except InputError:
        return None
    if entry in entries:
        return None
    entries[entry] = {"UUID": job_uid, "Times": times}
    return orjson.dumps(entries).decode()


def job_of(entry: str) -> str:
    """`<ns>/<name>` of an entry; empty where it has another shape."""
    name = entry[: -_UID_LENGTH - 1]
    return name if "/" in name else ""


def _entries(text: str, where: str) -> dict[str, object]:
    if not text.strip():
        return {}
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{RETRIES_KEY} is no JSON: {error}", where=where) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{RETRIES_KEY} is no JSON object", where=where)
    return content


__all__ = ["RETRIES_KEY", "granted", "job_of", "parse_retries"]
