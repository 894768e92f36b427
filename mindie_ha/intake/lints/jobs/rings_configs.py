"""`rings-config-<job>`: the ConfigMap into which the Ascend Operator writes the rank table of a job.

Source: rescheduling contract §1.3, §3.5, §4.9; motor contract §4.1; rank table contract §6.5.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mindie_ha.intake.jobs.reading import as_written
from mindie_ha.intake.lints.jobs.rules import Hit, Hits, Rule, listed, quoted
from mindie_ha.intake.lints.remarks import Sheet, Weight
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.policy.parameters.catalogue import parameter
from mindie_ha.policy.parameters.metadata import DEPLOY_LABELS

PREFIX = "rings-config-"
NAME = "rank table"
KEY = "hccl.json"
LABELS = ("metadata", "labels")
KNOWN_STATUS = ("initializing", "completed", "unknown")


@dataclass(frozen=True, slots=True)
class RingsConfig:
    """What the rules look at."""

    labels: dict[str, object]
    data: dict[str, object]

    @property
    def of_service(self) -> bool:
        """Whether it belongs to a MindIE service."""
        return "jobID" in self.labels

    @property
    def deploy_labels(self) -> list[str]:
        """Those of the two that are there."""
        return [name for name in DEPLOY_LABELS if name in self.labels]


def knows(subject: Subject) -> bool:
    """Whether it is one."""
    return subject.kind == "ConfigMap" and subject.name.startswith(PREFIX)


def look(subject: Subject) -> Sheet:
    """All its rules."""
    config = RingsConfig(dict(subject.labels), dict(subject.data))
    remarks = tuple(remark for rule in RINGS_RULES for remark in rule.remarks(config, subject.places))
    return Sheet(subject.title, NAME, remarks=remarks)


def label_no_string(config: RingsConfig) -> Hits:
    """Labels that YAML reads as something else."""
    for name, value in config.labels.items():
        if not isinstance(value, str):
            yield Hit((*LABELS, name), f"is {as_written(value)}, no string")


def no_deploy_label(config: RingsConfig) -> Hits:
    """No deploy label."""
    if config.of_service and not config.deploy_labels:
        yield Hit((*LABELS, DEPLOY_LABELS[0]), f"is missing, and {DEPLOY_LABELS[1]} too")


def both_deploy_labels(config: RingsConfig) -> Hits:
    """Both deploy labels."""
    if len(config.deploy_labels) > 1:
        yield Hit((*LABELS, DEPLOY_LABELS[1]), f"stands beside {DEPLOY_LABELS[0]}")


def not_consumed(config: RingsConfig) -> Hits:
    """Label `mx-consumer-cim` absent."""
    if config.of_service and config.labels.get("mx-consumer-cim") != "true":
        yield Hit((*LABELS, "mx-consumer-cim"), 'is not "true"')


def unknown_family(config: RingsConfig) -> Hits:
    """Label `ring-controller.atlas` absent or unknown."""
    known = parameter("ring-controller.atlas").values
    value = config.labels.get("ring-controller.atlas")
    if value is None:
        yield Hit((*LABELS, "ring-controller.atlas"), "is missing")
    elif isinstance(value, str) and value not in known:
        yield Hit((*LABELS, "ring-controller.atlas"), f"is {quoted(value)}, none of {listed(known)}")


def bad_table(config: RingsConfig) -> Hits:
    """An `hccl.json` that is absent or cannot be read."""
    text = config.data.get(KEY)
    if not isinstance(text, str):
        yield Hit(("data", KEY), "is missing" if text is None else "is no string")
        return
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Hit(("data", KEY), f"is no JSON: {str(error)[:80]}")
        return
    status = table.get("status") if isinstance(table, dict) else None
    if not isinstance(status, str) or status not in KNOWN_STATUS:
        yield Hit(("data", KEY), f"has the status {status!r:.40}")


RingsRule = Rule[RingsConfig]
RINGS_RULES: tuple[RingsRule, ...] = (
    RingsRule(
        "rings-label-no-string",
        Weight.ERROR,
        label_no_string,
        "labels are strings; the API server refuses the object",
        "put the value in quotes",
    ),
    RingsRule(
        "rings-no-deploy-label",
        Weight.WARNING,
        no_deploy_label,
        "ClusterD builds no table of the service while one ConfigMap has none; we publish the instance "
        "without deploy_server",
        'write grt-group/deploy-server: "0" (or grt-server/deploy-server)',
        about=("grt-group/deploy-server",),
    ),
    RingsRule(
        "rings-both-deploy-labels",
        Weight.ERROR,
        both_deploy_labels,
        "with both, nobody publishes the instance",
        "keep one of them",
        about=("grt-group/deploy-server",),
    ),
    RingsRule(
        "rings-not-consumed",
        Weight.WARNING,
        not_consumed,
        "ClusterD watches only ConfigMaps with it",
        'write mx-consumer-cim: "true"',
    ),
    RingsRule(
        "rings-card-family",
        Weight.WARNING,
        unknown_family,
        "the operator chooses the form of the table by it",
        "write the label as on the job",
        about=("ring-controller.atlas",),
    ),
    RingsRule(
        "rings-bad-table",
        Weight.ERROR,
        bad_table,
        "the operator needs a table to begin with",
        """write hccl.json: '{"status": "initializing"}'""",
    ),
)
