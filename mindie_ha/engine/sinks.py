"""Where records of decisions go: the log, metrics and the audit file. (Events: `cluster/events.py`.)

The audit file is JSON lines, append only, one per record that acted, warned or changed a phase; it is for
people who ask months later why a pod was deleted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

from mindie_ha.engine.records import DecisionRecord
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import InputError


def count(record: DecisionRecord, metrics: Metrics) -> None:
    """Add the record to the metrics; every label comes from a bounded vocabulary."""
    metrics.decisions.labels(record.rule).inc()
    for notice in record.notices:
        metrics.notices.labels(notice.reason).inc()
    closed = record.closed
    if closed is not None:
        rung = closed.rungs[-1] if closed.rungs else ""
        metrics.recoveries.labels(record.role, rung, closed.outcome).inc()
        lasted_s = closed.closed_at_s - closed.opened_at_s
        metrics.recovery_s.labels(record.role, closed.outcome).observe(lasted_s)


def to_log(record: DecisionRecord, log: Log) -> None:
    """One line per record; warnings where a notice says so."""
    fields = {
        "subject": record.subject,
        "scope": str(record.scope),
        "rule": record.rule,
        "epoch": record.epoch or None,
        "phase": f"{record.rung}/{record.phase}" if record.phase else None,
        "outcome": record.outcome or None,
        "actions": list(record.actions) or None,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    log.info(record.sentence, **present)
    for notice in record.notices:
        say = log.warning if notice.warning else log.info
        say(notice.message, reason=notice.reason, subject=record.subject, scope=str(record.scope))


def as_json(record: DecisionRecord) -> dict[str, Any]:
    """The record as plain data: the shape of the audit file, the API and `-o json`."""
    return {
        "at_s": record.at_s,
        "scope": str(record.scope),
        "subject": record.subject,
        "rule": record.rule,
        "sentence": record.sentence,
        "epoch": record.epoch,
        "rung": record.rung,
        "phase": record.phase,
        "outcome": record.outcome,
        "actions": list(record.actions),
        "notices": [
            {"reason": each.reason, "message": each.message, "warning": each.warning}
            for each in record.notices
        ],
    }


class AuditFile:
    """Appends records to a file, line by line. Raises InputError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: TextIO = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}",
                where=f"audit file {path}",
                advice="give a file in a folder that exists and can be written to",
            ) from None

    def write(self, record: DecisionRecord) -> None:
        """Append one record and flush it."""
        self._file.write(json.dumps(as_json(record), ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
