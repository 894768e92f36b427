"""What is known of a job from its YAML. Frozen; every collection may be empty, every text "".

A label that is `true` or `1` is refused by the API server, so `labels` holds the strings and `mistakes` the
rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mindie_ha.intake.jobs.places import Path, Places
from mindie_ha.intake.jobs.scripts import Script
from mindie_ha.model.workloads import LABEL_APP, LABEL_JOB_ID, ROLES_BY_APP, Role
from mindie_ha.policy.parameters.modes import LEADERS, Framework, Mode, strategies

CONTAINER = "ascend"


class JobKind(StrEnum):
    """What makes the pods."""

    ASCEND_JOB = "AscendJob"
    VC_JOB = "Job"
    POD_SET = "pod set"  # Deployment or StatefulSet: the labels that count are those of its pod template


class Blame(StrEnum):
    """What kind of mistake a value is."""

    NO_STRING = "no string"  # a label, annotation or env value that YAML reads as something else
    WRONG_TYPE = "wrong type"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A value that cannot be what it should be."""

    blame: Blame
    path: Path
    what: str


@dataclass(frozen=True, slots=True)
class Port:
    """One entry of `ports`."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod template."""

    path: Path
    name: str
    image: str
    env: Mapping[str, str]
    env_paths: Mapping[str, Path]  # of every entry, also those without a plain value
    script: Script  # what command and args show
    script_path: Path
    ports: tuple[Port, ...]
    cards: int  # NPUs that it asks for
    card_resource: str

    def visible(self, name: str) -> str | None:
        """A variable as the program sees it before injection: an export in the script beats `env`."""
        return self.script.exports.get(name, self.env.get(name))

    def place_of(self, name: str) -> Path:
        """Where that variable stands."""
        if name in self.script.exports or name not in self.env_paths:
            return self.script_path
        return self.env_paths[name]


@dataclass(frozen=True, slots=True)
class Task:
    """One replica type of an AscendJob, one task of a vcjob, or the pods of a Deployment."""

    path: Path
    template_path: Path
    kind: str
    replicas: int
    restart_policy: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    host_network: bool
    grace_s: int | None
    node_selector: Mapping[str, str]
    config_map_volumes: Mapping[str, str]  # volume -> ConfigMap
    containers: tuple[Container, ...]
    written: bool = True  # False: it stands there with nothing in it, so nothing can be said of its pods

    @property
    def main(self) -> Container | None:
        """Container `ascend`."""
        return next((one for one in self.containers if one.name == CONTAINER), None)

    @property
    def cards(self) -> int:
        """NPUs of each pod."""
        return sum(one.cards for one in self.containers)

    @property
    def pod_path(self) -> Path:
        """Path of the pod spec."""
        return (*self.template_path, "spec")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What other objects of the same set say. `hot_reset`: of a device plugin; None: there is none.
    `rings`: namespace and name of every `rings-config-*`."""

    hot_reset: int | None = None
    rings: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class JobDescription:
    """One job."""

    kind: JobKind
    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    labels_path: Path
    annotations_path: Path
    raw_labels: Mapping[str, object]  # as YAML has them, whatever their type
    tasks: tuple[Task, ...]
    tasks_path: Path
    min_available: int | None = None
    scheduling_policy: bool = False
    queue: str = ""
    scheduler: str = ""
    success_policy: str = ""
    backoff_limit: int | None = None
    max_retry: int | None = None
    policies_path: Path | None = None
    mistakes: tuple[Mistake, ...] = ()
    places: Places = field(default_factory=Places)
    around: Surroundings = Surroundings()

    def label(self, name: str) -> Path:
        """Path of a label."""
        return (*self.labels_path, name)

    def mistaken(self, path: Path) -> bool:
        """Whether what stands there is of a wrong type: said already, and of unknown meaning."""
        return any(mistake.path == path for mistake in self.mistakes)

    def annotation(self, name: str) -> Path:
        """Path of an annotation."""
        return (*self.annotations_path, name)

    @property
    def framework(self) -> Framework | None:
        """Label `framework`; None: absent or unknown."""
        text = self.labels.get("framework", "")
        return Framework(text) if text in set(Framework) else None

    @property
    def is_inference(self) -> bool:
        """Labels `app` and `jobID` make it an inference job for the operator."""
        return LABEL_APP in self.labels and LABEL_JOB_ID in self.labels

    @property
    def role(self) -> Role:
        """What it does in its service."""
        return ROLES_BY_APP.get(self.labels.get(LABEL_APP, ""), Role.TRAINING)

    @property
    def is_training(self) -> bool:
        """No part of a MindIE service."""
        return self.role is Role.TRAINING and not self.is_inference

    @property
    def leader(self) -> Task | None:
        """The task of the leading pod."""
        if self.kind is JobKind.ASCEND_JOB and self.framework is not None:
            return next((task for task in self.tasks if task.kind == LEADERS[self.framework]), None)
        return None

    @property
    def replicas(self) -> int:
        """All pods."""
        return sum(task.replicas for task in self.tasks)

    @property
    def complete(self) -> bool:
        """Whether something is written of each of its pods."""
        return bool(self.tasks) and all(task.written for task in self.tasks)

    @property
    def cards(self) -> int:
        """All NPUs."""
        return sum(task.replicas * task.cards for task in self.tasks)

    @property
    def scheduling(self) -> str:
        """Label `fault-scheduling`."""
        return self.labels.get("fault-scheduling", "")

    @property
    def rescheduled(self) -> bool:
        """Whether anybody restarts it."""
        return self.scheduling in ("force", "grace", "external-force", "external-grace")

    @property
    def recover_strategy(self) -> str:
        """Annotation `recover-strategy` as written."""
        return self.annotations.get("recover-strategy", "")

    @property
    def strategies(self) -> tuple[Mode, ...]:
        """Its known strategies."""
        return strategies(self.recover_strategy)

    @property
    def pod_level(self) -> bool:
        """Whether it asks for the pod level."""
        return self.labels.get("pod-rescheduling") == "on"

    @property
    def hot_switch(self) -> bool:
        """Whether it asks for hot switching."""
        return self.labels.get("subHealthyStrategy") == "hotSwitch"

    @property
    def uses_taskd(self) -> bool:
        """Whether a mode of it needs TaskD in its pods."""
        return self.is_training and bool(self.pod_level or self.strategies or self.hot_switch)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Every mode that its metadata asks for, narrowest last."""
        found = [Mode.JOB] if self.rescheduled else []
        found += [Mode.POD] if self.pod_level else []
        found += list(self.strategies)
        return (*found, Mode.HOT_SWITCH) if self.hot_switch else tuple(found)

    def mains(self) -> Iterator[tuple[Task, Container]]:
        """Each task's container `ascend`, where it has pods and one."""
        for task in self.tasks:
            if task.main is not None and task.replicas > 0:
                yield task, task.main
