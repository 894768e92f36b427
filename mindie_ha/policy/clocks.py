"""A clock that was set back while nobody ran: what a ledger says was done then lies ahead of now.

Nothing can have happened later than now, so all times of the record move back together: deadlines and
back-off keep what was left of them, and nobody waits an hour for a clock. While a controller runs its clock
never jumps (`kit/clock.py`); a clock that was set ahead looks like an absence, and needs nothing. Replicas
whose clocks differ by less than `TOLERANCE_S` leave each other's records alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mindie_ha.model.ledgers import NodeLedger, WorkloadLedger
from mindie_ha.model.recoveries import Frozen

TOLERANCE_S = 5.0
LedgerT = TypeVar("LedgerT", bound=Frozen)


def of_workload(ledger: WorkloadLedger, *, now_s: float) -> WorkloadLedger:
    """A workload's memory in the time that is now."""
    done = [attempt.at_s for attempt in ledger.attempts]
    done += [one.closed_at_s for one in ledger.closed]
    done += (
        [ledger.recovery.phase_since_s, ledger.recovery.opened_at_s] if ledger.recovery is not None else []
    )
    done += [ledger.parked.at_s] if ledger.parked is not None else []
    return _moved(ledger, done, now_s=now_s)


def of_node(ledger: NodeLedger, *, now_s: float) -> NodeLedger:
    """A node's memory in the time that is now."""
    done = [one.since_s for one in ledger.isolations] + [one.at_s for one in ledger.past]
    return _moved(ledger, done, now_s=now_s)


def _moved(ledger: LedgerT, done: Iterable[float], *, now_s: float) -> LedgerT:
    ahead_s = max(done, default=now_s) - now_s
    if ahead_s <= TOLERANCE_S:
        return ledger
    body = _shifted(ledger.model_dump(), ahead_s, is_time=False)
    return type(ledger).model_validate(body)


def _shifted(value: object, by_s: float, *, is_time: bool) -> object:
    """`value` with every time in it earlier; 0 and None are no times."""
    if isinstance(value, dict):
        return {name: _shifted(one, by_s, is_time=str(name).endswith("_s")) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_shifted(one, by_s, is_time=is_time) for one in value)
    if is_time and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return max(0.001, value - by_s)
    return value
