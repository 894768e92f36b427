"""Ledgers of older versions of this controller, brought up to the present schema one version at a time.

A ledger that an older version wrote is read here, and written back in the present schema with its next
change; so an upgrade loses no recovery. The other way there is no way: what a newer version wrote is not
guessed at, its owner is only observed until that version runs again.

A step takes the JSON object of one schema version and returns that of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import orjson

from mindie_ha.model.errors import LedgerUnreadable
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pauses import PauseLedger
from mindie_ha.model.recoveries import Frozen

Body = dict[str, Any]
Step = Callable[[Body], Body]


def _with_new_defaults(body: Body) -> Body:
    """The new fields have defaults that say what the older version would have said."""
    return body


STEPS: Mapping[tuple[type[Frozen], int], Step] = {
    (WorkloadLedger, 1): _with_new_defaults,
    (WorkloadLedger, 2): _with_new_defaults,
    (PauseLedger, 1): _with_new_defaults,
}


def current(model: type[Frozen]) -> int:
    """The schema version of a kind of ledger."""
    version: int = get_args(model.model_fields["schema_version"].annotation)[0]
    return version


def upgraded(model: type[Frozen], body: bytes) -> bytes:
    """`body` in the present schema. Raises LedgerUnreadable for what is newer, unknown or no JSON object."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise LedgerUnreadable(f"no JSON: {error}") from error
    version, newest = (found.get("schema_version") if isinstance(found, dict) else None), current(model)
    if version == newest:
        return body
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise LedgerUnreadable("schema_version is missing or no positive number")
    if version > newest:
        raise LedgerUnreadable(
            f"schema_version {version} is newer than {newest}, the newest that this mindie-ha knows"
        )
    for step_from in range(version, newest):
        found = {**STEPS[model, step_from](found), "schema_version": step_from + 1}
    try:
        return orjson.dumps(found, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:  # it reads deeper nesting than it writes
        raise LedgerUnreadable(f"cannot be written again: {error}") from error


__all__ = ["STEPS", "current", "upgraded"]
