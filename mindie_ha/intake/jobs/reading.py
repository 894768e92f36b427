"""An object -> a `JobDescription`, whatever is wrong with it.

Wrong types become mistakes with their place and count as absent; nothing is refused as a whole and nothing
raises, so that every other rule still says what it has to say. Sizes are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from mindie_ha.intake.jobs.descriptions import (
    Blame,
    Container,
    JobDescription,
    JobKind,
    Mistake,
    Port,
    Surroundings,
    Task,
)
from mindie_ha.intake.jobs.places import Path, Places
from mindie_ha.intake.jobs.scripts import Script, read_script

VC_API = re.compile(r"batch\.volcano\.sh/")
MAX_ITEMS = 500  # of one list or mapping
MAX_WHOLE = 100_000  # of all of them: with YAML aliases a small file may hold no end of them
MAX_NUMBER = 2**63 - 1
MAX_CARDS = 1_000_000_000
CARDS = re.compile(r"huawei\.com/(?:Ascend[\w-]+|npu)\Z")
_RESTART_POLICY = {JobKind.ASCEND_JOB: "Never", JobKind.VC_JOB: "OnFailure", JobKind.POD_SET: "Always"}
_WHOLE = re.compile(r"[0-9]{1,9}\Z")


def job_kind(body: Mapping[str, object]) -> JobKind | None:
    """What `body` is; None: no job that we know."""
    kind, api = body.get("kind"), body.get("apiVersion")
    if kind == "AscendJob":
        return JobKind.ASCEND_JOB
    if kind == "Job" and isinstance(api, str) and VC_API.match(api):
        return JobKind.VC_JOB
    if kind in ("Deployment", "StatefulSet"):
        labels = _dig(body, "spec", "template", "metadata", "labels")
        return JobKind.POD_SET if isinstance(labels, dict) and "fault-scheduling" in labels else None
    return None


def read_job(
    body: Mapping[str, object],
    kind: JobKind,
    *,
    places: Places | None = None,
    around: Surroundings | None = None,
) -> JobDescription:
    """The description of `body`."""
    return _Reader(body, kind).job(places or Places(), around or Surroundings())


def _dig(value: object, *path: str) -> object:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


class _Reader:
    """Reads one object, writing mistakes down."""

    def __init__(self, body: Mapping[str, object], kind: JobKind) -> None:
        self.body = body
        self.kind = kind
        self.mistakes: list[Mistake] = []
        self.left = MAX_WHOLE

    def job(self, places: Places, around: Surroundings) -> JobDescription:
        """All of it."""
        spec = self.mapping(self.body.get("spec"), ("spec",))
        policy = self.mapping(spec.get("runPolicy"), ("spec", "runPolicy"))
        gang_path: Path = ("spec", "runPolicy", "schedulingPolicy")
        gang = self.mapping(policy.get("schedulingPolicy"), gang_path)
        if self.kind is JobKind.VC_JOB:
            gang, gang_path = spec, ("spec",)
        meta_path: Path = ("metadata",)
        meta = self.mapping(self.body.get("metadata"), meta_path)
        name, namespace = self.text(meta, "name", meta_path), self.text(meta, "namespace", meta_path)
        if self.kind is JobKind.POD_SET:
            meta_path = ("spec", "template", "metadata")
            template = self.mapping(spec.get("template"), ("spec", "template"))
            meta = self.mapping(template.get("metadata"), meta_path)
        labels_path, notes_path = (*meta_path, "labels"), (*meta_path, "annotations")
        tasks, tasks_path = self.tasks(spec)
        return JobDescription(
            kind=self.kind,
            namespace=namespace,
            name=name,
            labels=self.texts(meta.get("labels"), labels_path),
            annotations=self.texts(meta.get("annotations"), notes_path),
            labels_path=labels_path,
            annotations_path=notes_path,
            raw_labels=self.mapping(meta.get("labels"), labels_path),
            tasks=tasks,
            tasks_path=tasks_path,
            min_available=self.number(gang, "minAvailable", gang_path),
            scheduling_policy=policy.get("schedulingPolicy") is not None,
            queue=self.text(gang, "queue", gang_path),
            scheduler=self.text(spec, "schedulerName", ("spec",)),
            success_policy=self.text(spec, "successPolicy", ("spec",)),
            backoff_limit=self.number(policy, "backoffLimit", ("spec", "runPolicy")),
            max_retry=self.number(spec, "maxRetry", ("spec",)),
            policies_path=("spec", "policies") if spec.get("policies") else None,
            mistakes=tuple(dict.fromkeys(self.mistakes)),
            places=places,
            around=around,
        )

    def tasks(self, spec: Mapping[str, object]) -> tuple[tuple[Task, ...], Path]:
        """Replica types, tasks, or the one template."""
        if self.kind is JobKind.ASCEND_JOB:
            path: Path = ("spec", "replicaSpecs")
            specs = self.mapping(spec.get("replicaSpecs"), path)
            return tuple(
                self.task(kind.capitalize(), item, (*path, kind)) for kind, item in specs.items()
            ), path
        if self.kind is JobKind.VC_JOB:
            path = ("spec", "tasks")
            items = self.items(spec.get("tasks"), path)
            return tuple(self.vc_task(item, (*path, number)) for number, item in items), path
        return (self.task(str(self.body.get("kind")), spec, ("spec",)),), ("spec",)

    def vc_task(self, value: object, path: Path) -> Task:
        """One task of a vcjob."""
        return self.task(self.text(self.mapping(value, path), "name", path), value, path)

    def task(self, kind: str, value: object, path: Path) -> Task:
        """One group of equal pods."""
        spec = self.mapping(value, path)
        template_path = (*path, "template")
        template = self.mapping(spec.get("template"), template_path)
        meta_path, pod_path = (*template_path, "metadata"), (*template_path, "spec")
        meta, pod = (
            self.mapping(template.get("metadata"), meta_path),
            self.mapping(template.get("spec"), pod_path),
        )
        replicas = self.number(spec, "replicas", path)
        own = self.text(spec, "restartPolicy", path)
        theirs = self.text(pod, "restartPolicy", pod_path)
        default = _RESTART_POLICY[self.kind]
        return Task(
            path=path,
            template_path=template_path,
            kind=kind[:63],
            replicas=1 if replicas is None else replicas,
            restart_policy=(own or default) if self.kind is JobKind.ASCEND_JOB else (theirs or default),
            labels=self.texts(meta.get("labels"), (*meta_path, "labels")),
            annotations=self.texts(meta.get("annotations"), (*meta_path, "annotations")),
            host_network=pod.get("hostNetwork") is True,
            grace_s=self.number(pod, "terminationGracePeriodSeconds", pod_path),
            node_selector=self.texts(pod.get("nodeSelector"), (*pod_path, "nodeSelector")),
            config_map_volumes=self.volumes(pod.get("volumes"), (*pod_path, "volumes")),
            containers=tuple(
                self.container(item, (*pod_path, "containers", number))
                for number, item in self.items(pod.get("containers"), (*pod_path, "containers"))
            ),
            written=isinstance(value, dict) and bool(value),
        )

    def container(self, value: object, path: Path) -> Container:
        """One container."""
        spec = self.mapping(value, path)
        env: dict[str, str] = {}
        env_paths: dict[str, Path] = {}
        for number, item in self.items(spec.get("env"), (*path, "env")):
            at = (*path, "env", number)
            entry = self.mapping(item, at)
            name = self.text(entry, "name", at)
            env_paths[name] = at
            if isinstance(entry.get("value"), str):
                env[name] = str(entry["value"])
            elif entry.get("value") is not None:
                self.blame(Blame.NO_STRING, (*at, "value"), f"is {as_written(entry['value'])}, no string")
        resource, cards = self.cards(spec.get("resources"), (*path, "resources"))
        return Container(
            path=path,
            name=self.text(spec, "name", path),
            image=self.text(spec, "image", path),
            env=env,
            env_paths=env_paths,
            script=self.script(spec, path),
            script_path=(*path, "args" if spec.get("args") else "command"),
            ports=tuple(self.ports(spec.get("ports"), (*path, "ports"))),
            cards=cards,
            card_resource=resource,
        )

    def script(self, spec: Mapping[str, object], path: Path) -> Script:
        """Command and args as one text."""
        parts: list[str] = []
        for key in ("command", "args"):
            for number, item in self.items(spec.get(key), (*path, key)):
                if isinstance(item, str):
                    parts.append(item)
                else:
                    self.blame(Blame.WRONG_TYPE, (*path, key, number), f"is {as_written(item)}, no string")
        return read_script(parts)

    def ports(self, value: object, path: Path) -> list[Port]:
        """`ports`."""
        found = []
        for number, item in self.items(value, path):
            at = (*path, number)
            entry = self.mapping(item, at)
            port = self.number(entry, "containerPort", at)
            found.append(Port(port or 0, self.text(entry, "name", at)))
        return found

    def cards(self, value: object, path: Path) -> tuple[str, int]:
        """Name and number of the NPUs asked for."""
        resources = self.mapping(value, path)
        for part in ("requests", "limits"):
            for name, amount in self.mapping(resources.get(part), (*path, part)).items():
                if CARDS.match(name):
                    if isinstance(amount, int | str) and not isinstance(amount, bool):
                        found = amount if isinstance(amount, int) else _whole(amount)
                        if found is not None and 0 <= found < MAX_CARDS:
                            return name, found
                    self.blame(
                        Blame.WRONG_TYPE,
                        (*path, part, name),
                        f"is {as_written(amount)}, no whole number of cards",
                    )
        return "", 0

    def volumes(self, value: object, path: Path) -> dict[str, str]:
        """Volumes that are a ConfigMap."""
        found = {}
        for number, item in self.items(value, path):
            at = (*path, number)
            entry = self.mapping(item, at)
            source = self.mapping(entry.get("configMap"), (*at, "configMap"))
            if source:
                found[self.text(entry, "name", at)] = self.text(source, "name", (*at, "configMap"))
        return found

    # -- types -------------------------------------------------------------------------------------

    def mapping(self, value: object, path: Path) -> Mapping[str, object]:
        """`value` where it is a mapping; null counts as absent."""
        if isinstance(value, dict):
            room = self.room(len(value), path)
            return {key: item for key, item in islice(value.items(), room) if isinstance(key, str)}
        if value is not None:
            self.blame(Blame.WRONG_TYPE, path, f"is {as_written(value)}, no mapping")
        return {}

    def items(self, value: object, path: Path) -> list[tuple[int, object]]:
        """`value` where it is a list."""
        if isinstance(value, list):
            return list(enumerate(value[: self.room(len(value), path)]))
        if value is not None:
            self.blame(Blame.WRONG_TYPE, path, f"is {as_written(value)}, no list")
        return []

    def texts(self, value: object, path: Path) -> dict[str, str]:
        """Labels, annotations, selectors: strings by name."""
        found: dict[str, str] = {}
        if isinstance(value, dict) and any(not isinstance(key, str) for key in value):
            self.blame(Blame.NO_STRING, path, "has a key that is no string; put it in quotes")
        for key, item in self.mapping(value, path).items():
            if isinstance(item, str):
                found[key] = item
            elif item is not None:
                self.blame(Blame.NO_STRING, (*path, key), f"is {as_written(item)}, no string")
        return found

    def text(self, holder: Mapping[str, object], key: str, path: Path) -> str:
        """One string."""
        value = holder.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.blame(Blame.WRONG_TYPE, (*path, key), f"is {as_written(value)}, no string")
        return ""

    def number(self, holder: Mapping[str, object], key: str, path: Path) -> int | None:
        """One whole number."""
        value = holder.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER:
            return value
        if value is not None:
            self.blame(Blame.WRONG_TYPE, (*path, key), f"is {as_written(value)}, no whole number")
        return None

    def room(self, wanted: int, path: Path) -> int:
        """How many of so many items are read."""
        given = min(wanted, MAX_ITEMS, self.left)
        self.left -= given
        if given < wanted:
            self.blame(Blame.WRONG_TYPE, path, f"has {wanted} items; only {given} of them are looked at")
        return given

    def blame(self, blame: Blame, path: Path, what: str) -> None:
        """Write a mistake down."""
        if len(self.mistakes) < MAX_ITEMS:
            self.mistakes.append(Mistake(blame, path, what))


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.match(text) else None


def as_written(value: object) -> str:
    """A value as its author will know it again. What may have no end is not written out: with YAML aliases
    a few lines hold lists of billions, and a number may have thousands of digits."""
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        return "a very large number"
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"a {type(value).__name__}"
