"""Making findings, and keeping their number bounded.

A table of foreign origin can be wrong in a hundred thousand places; people and ledgers need the first few of
each kind and the number of the rest. The verdict never depends on the cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mindie_ha.model.ranktables import Finding, FindingCode, Severity

MAX_ALIKE = 20
"""Findings of one severity and code that are told in full."""


def reject(code: FindingCode, where: str, message: str) -> Finding:
    """A finding that forbids publishing."""
    return Finding(Severity.REJECT, code, where, message)


def warn(code: FindingCode, where: str, message: str) -> Finding:
    """A finding that a person should know about."""
    return Finding(Severity.WARN, code, where, message)


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in their order, of each kind at most MAX_ALIKE and then one that counts the others."""
    kept: list[Finding] = []
    seen: Counter[tuple[Severity, str]] = Counter()
    for finding in findings:
        kind = (finding.severity, finding.code)
        seen[kind] += 1
        if seen[kind] <= MAX_ALIKE:
            kept.append(finding)
    for (severity, code), times in seen.items():
        if times > MAX_ALIKE:
            kept.append(Finding(severity, code, "$", f"and {times - MAX_ALIKE} more of this kind"))
    return tuple(kept)


__all__ = ["MAX_ALIKE", "bounded", "reject", "warn"]
