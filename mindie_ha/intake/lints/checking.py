"""Which rules look at which object.

A line names a rule set, says whether it knows an object, and looks at it. The first that knows it speaks; an
object that nobody knows gets a sheet without a rule, which is no finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mindie_ha.intake.lints import cluster_lists, device_reports, level_tables, node_reports, public_reports
from mindie_ha.intake.lints.remarks import Sheet
from mindie_ha.intake.lints.subjects import Subject


@dataclass(frozen=True, slots=True)
class Rules:
    """One line of the table."""

    name: str
    knows: Callable[[Subject], bool]
    look: Callable[[Subject], Sheet]


RULES: tuple[Rules, ...] = (
    Rules("device report", device_reports.knows, device_reports.look),
    Rules("node report", node_reports.knows, node_reports.look),
    Rules("level tables", level_tables.knows, level_tables.look),
    Rules("ClusterD list", cluster_lists.knows, cluster_lists.look),
    Rules("public fault", public_reports.knows, public_reports.look),
)


def check(subject: Subject) -> Sheet:
    """What is to be said about one object; never raises."""
    for rules in RULES:
        if rules.knows(subject):
            return rules.look(subject)
    return Sheet(name=subject.title)
