"""`reset-config-<job>`: through it the processes of a training job are told to stop or to rejoin.

Source: training contract §3.7; rescheduling contract §1.3.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mindie_ha.intake.lints.jobs.rules import ERROR, WARNING, Hit, Hits, Rule
from mindie_ha.intake.lints.remarks import Sheet
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.model.reset_configs import RESET_CONFIG_PREFIX

NAME = "reset config"
KEY = "reset.json"
LABEL = "reset"
HINT = """write reset.json: '{"RankList": [], "UpdateTime": 0, "RetryTime": 0}'"""


@dataclass(frozen=True, slots=True)
class ResetConfig:
    """What the rules look at."""

    labels: dict[str, object]
    data: dict[str, object]


def knows(subject: Subject) -> bool:
    """Whether it is one."""
    return subject.kind == "ConfigMap" and subject.name.startswith(RESET_CONFIG_PREFIX)


def look(subject: Subject) -> Sheet:
    """All its rules."""
    config = ResetConfig(dict(subject.labels), dict(subject.data))
    remarks = tuple(remark for rule in RESET_RULES for remark in rule.remarks(config, subject.places))
    return Sheet(subject.title, NAME, remarks=remarks)


def no_label(config: ResetConfig) -> Hits:
    """Label `reset` absent."""
    if config.labels.get(LABEL) != "true":
        yield Hit(("metadata", "labels", LABEL), 'is not "true"')


def bad_json(config: ResetConfig) -> Hits:
    """A `reset.json` that is absent or cannot be read."""
    text = config.data.get(KEY)
    if not isinstance(text, str):
        yield Hit(("data", KEY), "is missing" if text is None else "is no string")
        return
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Hit(("data", KEY), f"is no JSON: {str(error)[:80]}")
        return
    if not isinstance(body, dict):
        yield Hit(("data", KEY), "is no JSON object")


ResetRule = Rule[ResetConfig]
RESET_RULES: tuple[ResetRule, ...] = (
    ResetRule(
        "reset-no-label",
        WARNING,
        no_label,
        "device plugin and agents look for ConfigMaps with it",
        'write reset: "true"',
    ),
    ResetRule(
        "reset-bad-json",
        ERROR,
        bad_json,
        "what cannot be read cannot be changed: the processes are never told to stop or to rejoin, and the "
        "job "
        "level is used",
        HINT,
    ),
)
