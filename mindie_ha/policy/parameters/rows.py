"""One row of the table of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.policy.parameters.modes import Framework, Mode


class Place(StrEnum):
    """Where a parameter is written."""

    JOB_LABEL = "label of the job"
    JOB_ANNOTATION = "annotation of the job"
    POD_ANNOTATION = "annotation of the pod template"
    POD_LABEL = "label of job and pod template"
    JOB_FIELD = "field of the job"
    POD_FIELD = "field of the pod template"
    CONTAINER = "container `ascend`"
    ENVIRONMENT = "environment of container `ascend`"
    SCRIPT = "start script of the training"
    TRAINING = "argument of the training program"
    MODEL = "configuration file of the model"
    PROGRAM = "code of the training program"
    IMAGE = "image"
    RANK_TABLE = "ConfigMap `rings-config-<job>`"
    DEVICE_PLUGIN = "argument of the device plugin"
    VOLCANO = "configuration of Volcano"
    OPERATOR = "argument of the Ascend Operator"
    STORAGE = "storage of the job"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: where it stands, what it may be, who reads it, and which modes need it.

    `values` are the words it may have, empty for anything; `bounds` those of a number, both included.
    """

    name: str
    place: Place
    meaning: str
    read_by: tuple[str, ...]
    values: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    default: str = ""
    needed_by: frozenset[Mode] = frozenset()
    conflicts: str = ""
    injected: bool = False  # the Ascend Operator sets it: nobody has to
    frameworks: frozenset[Framework] = frozenset()  # empty: all

    def allows(self, number: int) -> bool:
        """Whether `number` is within the bounds."""
        return self.bounds is None or self.bounds[0] <= number <= self.bounds[1]
