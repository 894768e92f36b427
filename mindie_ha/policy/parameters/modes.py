"""The ways in which a fault of a job can be handled, and the frameworks that jobs are written for."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """One way to handle a fault; the value is the word that people write, where there is one."""

    JOB = "job-rescheduling"
    POD = "pod-rescheduling"
    RECOVER = "recover"
    IN_PLACE = "recover-in-place"
    RETRY = "retry"
    ELASTIC = "elastic-training"
    DUMP = "dump"
    EXIT = "exit"
    GRACEFUL = "graceful-tolerance"
    OPERATOR_RETRY = "operator-retry"
    LINK_SWITCH = "link-switch"
    STRESS_TEST = "stress-test"
    HOT_SWITCH = "hotSwitch"


STRATEGIES = (Mode.RETRY, Mode.IN_PLACE, Mode.RECOVER, Mode.ELASTIC, Mode.DUMP, Mode.EXIT)
"""What `recover-strategy` may list, in the fixed order in which they are tried."""

MIGRATING = frozenset({Mode.RECOVER, Mode.IN_PLACE, Mode.RETRY, Mode.ELASTIC})
"""Strategies under which training goes on; the other two only end it well."""

TITLES = {
    Mode.JOB: "Job-level rescheduling",
    Mode.POD: "Pod-level rescheduling",
    Mode.RECOVER: "Process-level rescheduling",
    Mode.IN_PLACE: "Process-level in-place recovery",
    Mode.RETRY: "Process-level online recovery",
    Mode.ELASTIC: "Elastic training",
    Mode.DUMP: "Dying-gasp checkpoint",
    Mode.EXIT: "Exit",
    Mode.GRACEFUL: "Graceful fault tolerance (deprecated)",
    Mode.OPERATOR_RETRY: "Operator-level online recovery",
    Mode.LINK_SWITCH: "Link failover: suspension and switchback",
    Mode.STRESS_TEST: "Online stress testing",
    Mode.HOT_SWITCH: "Hot switching",
}


class Framework(StrEnum):
    """Label `framework`."""

    PYTORCH = "pytorch"
    MINDSPORE = "mindspore"
    TENSORFLOW = "tensorflow"


LEADERS = {Framework.PYTORCH: "Master", Framework.MINDSPORE: "Scheduler", Framework.TENSORFLOW: "Chief"}
"""The replica type whose pod leads."""

WORKER = "Worker"


def strategies(text: str) -> tuple[Mode, ...]:
    """The strategies in a value of `recover-strategy`, in its order, as the Ascend Operator and ClusterD read
    it: split at commas, nothing trimmed, words that they do not know left out."""
    found = (item for item in dict.fromkeys(text.split(",")) if item in set(STRATEGIES))
    return tuple(Mode(item) for item in found)
