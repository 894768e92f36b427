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


def of_workload(ledger: WorkloadLedger, *, now_s: float, pause_s: float) -> WorkloadLedger:
    """A workload's memory in the time that is now. `pause_s`: no back-off is longer."""
    done = [ledger.adopted_at_s, ledger.retry_times_written_at_s]
    done += [attempt.at_s for attempt in ledger.attempts]
    done += [one.closed_at_s for one in ledger.closed]
    done += [ledger.parked.at_s] if ledger.parked is not None else []
    if (recovery := ledger.recovery) is not None:
        done += [recovery.phase_since_s, recovery.opened_at_s, recovery.not_before_s - pause_s]
        since_s = (recovery.quiet_since_s, recovery.no_active_since_s, recovery.guarded_since_s)
        done += [at_s for at_s in since_s if at_s is not None]
    return _moved(ledger, done, now_s=now_s)


def of_node(ledger: NodeLedger, *, now_s: float) -> NodeLedger:
    """A node's memory in the time that is now."""
    done = [one.since_s for one in ledger.isolations] + [one.at_s for one in ledger.past]
    done += [one.healed_since_s for one in ledger.isolations if one.healed_since_s is not None]
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
