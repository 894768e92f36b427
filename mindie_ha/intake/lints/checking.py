"""Which rules look at which object.

A line names a rule set, says whether it knows an object, and looks at it. The first that knows it speaks; an
object that nobody knows gets a sheet without a rule, which is no finding. Objects of one set are looked at
together: what one says (the device plugin's `-hotReset`) may make another wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mindie_ha.intake.lints import cluster_lists, device_reports, level_tables, node_reports, public_reports
from mindie_ha.intake.lints.jobs import device_plugins, manifests, reset_configs, rings_configs
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
    Rules(rings_configs.NAME, rings_configs.knows, rings_configs.look),
    Rules(reset_configs.NAME, reset_configs.knows, reset_configs.look),
    Rules(device_plugins.NAME, device_plugins.knows, device_plugins.look),
    Rules(manifests.NAME, manifests.knows, manifests.look),
)


def check(subject: Subject) -> Sheet:
    """What is to be said about one object; never raises."""
    for rules in RULES:
        if rules.knows(subject):
            return _placed(rules.look(subject), subject)
    return _placed(Sheet(name=subject.title), subject)


def check_all(subjects: Iterable[Subject]) -> list[Sheet]:
    """What is to be said about each object of one set; never raises."""
    found = list(subjects)
    around = manifests.surroundings(found)
    return [
        _placed(manifests.look(subject, around), subject) if manifests.knows(subject) else check(subject)
        for subject in found
    ]


def _placed(sheet: Sheet, subject: Subject) -> Sheet:
    return replace(sheet, file=subject.file, document=subject.document)
