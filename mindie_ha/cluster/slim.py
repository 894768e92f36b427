"""Kubernetes objects reduced to the fields we read, decoded from bytes with types checked.

A list page or watch line is decoded once; then each object is validated alone, so that a hostile one costs
its own object and nobody else (`InputError` naming it). A key with `null` counts as absent, as the API means
it. Unknown
fields are ignored: new servers add some.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Generic, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey


def _stamp(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("a time must be an RFC 3339 string")  # noqa: TRY004 - pydantic's way
    parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is None:
        raise ValueError("a time must name its zone")
    return parsed.timestamp()


Stamp = Annotated[float, BeforeValidator(_stamp)]  # Unix seconds


class Slim(BaseModel):
    """Base: camelCase keys, everything unknown is ignored."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class OwnerReference(Slim):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str
    controller: bool = False


class Metadata(Slim):
    """`metadata`."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: Stamp | None = None
    deletion_timestamp: Stamp | None = None
    deletion_grace_period_seconds: float | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class SlimObject(Slim):
    """Any object: its metadata."""

    metadata: Metadata

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def version(self) -> int:
        """The resourceVersion as a number; 0 where it is none."""
        return version_number(self.metadata.resource_version)


def version_number(text: str) -> int:
    """A resourceVersion as a number; 0 where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


class Condition(Slim):
    """One status condition."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Stamp | None = None


class _Waiting(Slim):
    reason: str = ""
    message: str = ""


class _Running(Slim):
    started_at: Stamp | None = None


class Terminated(Slim):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    finished_at: Stamp | None = None


class ContainerState(Slim):
    """State of one container, now or before."""

    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Slim):
    """What the kubelet says of one container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class EnvVar(Slim):
    """One literal environment variable."""

    name: str
    value: str = ""


class Container(Slim):
    """A container of a pod."""

    name: str = ""
    readiness_probe: dict[str, Any] | None = None


class _ConfigMapVolume(Slim):
    name: str = ""


class Volume(Slim):
    """A volume, as far as it is a ConfigMap."""

    name: str
    config_map: _ConfigMapVolume | None = None


class PodSpec(Slim):
    """`spec` of a pod."""

    node_name: str = ""
    node_selector: dict[str, Any] | None = None
    affinity: dict[str, Any] | None = None
    termination_grace_period_seconds: float = 30.0
    containers: tuple[Container, ...] = ()


class PodStatus(Slim):
    """`status` of a pod."""

    phase: str = ""
    reason: str = ""
    pod_ip: str = Field("", alias="podIP")
    host_ip: str = Field("", alias="hostIP")
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class SlimPod(SlimObject):
    """A Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class SlimTaint(Slim):
    """A node taint."""

    key: str
    effect: str
    value: str = ""


class _NodeSpec(Slim):
    unschedulable: bool = False
    taints: tuple[SlimTaint, ...] = ()


class _Address(Slim):
    type: str = ""
    address: str = ""


class _NodeStatus(Slim):
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[_Address, ...] = ()
    capacity: dict[str, str | int] = Field(default_factory=dict)


class SlimNode(SlimObject):
    """A Node."""

    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class TemplateContainer(Slim):
    """A container of a pod template."""

    env: tuple[EnvVar, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class TemplateSpec(Slim):
    """`spec` of a pod template."""

    restart_policy: str = ""

    containers: tuple[TemplateContainer, ...] = ()
    volumes: tuple[Volume, ...] = ()


class _TemplateMetadata(Slim):
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class PodTemplate(Slim):
    """The template of a role's pods."""

    metadata: _TemplateMetadata = _TemplateMetadata()
    spec: TemplateSpec = TemplateSpec()


class ReplicaSpec(Slim):
    """One replica type of an AscendJob."""

    replicas: int = 1
    restart_policy: str = "Never"
    template: PodTemplate = PodTemplate()


class _JobSpec(Slim):
    replica_specs: dict[str, ReplicaSpec] = Field(default_factory=dict)


class _JobStatus(Slim):
    conditions: tuple[Condition, ...] = ()


class SlimOwner(SlimObject):
    """What makes the pods of one workload; `cluster/workload_kinds.py` has the kinds."""


class SlimAscendJob(SlimOwner):
    """An AscendJob."""

    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()


class Task(Slim):
    """One task of a vcjob."""

    name: str = ""
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class _VolcanoJobSpec(Slim):
    tasks: tuple[Task, ...] = ()
    max_retry: int = 0


class _JobState(Slim):
    phase: str = ""
    reason: str = ""
    message: str = ""


class _VolcanoJobStatus(Slim):
    state: _JobState = _JobState()


class SlimVolcanoJob(SlimOwner):
    """A Volcano batch job."""

    spec: _VolcanoJobSpec = _VolcanoJobSpec()
    status: _VolcanoJobStatus = _VolcanoJobStatus()


class _PodGroupStatus(Slim):
    phase: str = ""


class SlimPodGroup(SlimObject):
    """Volcano's PodGroup."""

    status: _PodGroupStatus = _PodGroupStatus()


class SlimConfigMap(SlimObject):
    """A ConfigMap."""

    data: dict[str, str] = Field(default_factory=dict)


SlimT = TypeVar("SlimT", bound=SlimObject)

MODELS: dict[str, type[SlimObject]] = {
    "Pod": SlimPod,
    "Node": SlimNode,
    "AscendJob": SlimAscendJob,
    "Job": SlimVolcanoJob,
    "PodGroup": SlimPodGroup,
    "ConfigMap": SlimConfigMap,
}


MAX_DEPTH = 100  # no field that we read is nested half as deeply
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)


class _ListMeta(Slim):
    resource_version: str = ""
    continue_: str = Field("", alias="continue")


class _Envelope(Slim, Generic[SlimT]):
    kind: str = Field(pattern="List$")  # whatever else was answered is no list, least of all an empty one
    metadata: _ListMeta
    items: tuple[SlimT, ...]


class Page(Generic[SlimT]):
    """One page of a list: its items, each good or refused with the reason, and where to go on.

    A page of sound objects is read in one go, without building what we do not need (a fifth of the time);
    only if that fails is it taken apart, item by item. Raises InputError for what is no list at all: taken
    for an empty one it would say that everything is gone.
    """

    def __init__(self, body: bytes, model: type[SlimT], *, kind: str) -> None:
        self.objects: list[SlimT] = []
        self.refused: list[tuple[ObjectKey | None, InputError]] = []
        try:
            envelope = _envelope_of(model).model_validate_json(body)
        except ValidationError:
            self._take_apart(decode_json(body, where=f"list of {kind}"), model, kind)
        else:
            self.resource_version = envelope.metadata.resource_version
            self.continue_token = envelope.metadata.continue_
            self.objects = list(envelope.items)

    def _take_apart(self, content: dict[str, Any], model: type[SlimT], kind: str) -> None:
        meta, listed, told = content.get("metadata"), content.get("items"), content.get("kind")
        lists = isinstance(told, str) and told.endswith("List") and isinstance(meta, dict)
        if not lists or not isinstance(meta, dict) or not isinstance(listed, list | None):
            raise InputError("is no list as an API server answers it", where=f"list of {kind}")
        self.resource_version = str(meta.get("resourceVersion") or "")
        self.continue_token = str(meta.get("continue") or "")
        for raw in listed or ():  # null: an empty list of some servers
            try:
                self.objects.append(slim(raw, model, kind=kind))
            except InputError as error:
                self.refused.append((raw_key(raw), error))


@lru_cache(maxsize=32)  # more than there are models
def _envelope_of(model: type[SlimT]) -> type[_Envelope[SlimT]]:
    return _Envelope[model]  # type: ignore[valid-type]  # a class made at run time


def decode_json(body: bytes, *, where: str) -> dict[str, Any]:
    """A JSON object, or InputError. What is nested deeper than anything we read may be cut out of it."""
    try:
        content = _loads(body)
    except orjson.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error}", where=where) from error
    if not isinstance(content, dict):
        raise InputError("is no JSON object", where=where)
    return content


def slim(item: object, model: type[SlimT], *, kind: str) -> SlimT:
    """One decoded object as its slim model, or InputError naming it and the first wrong field."""
    try:
        return model.model_validate(item)
    except ValidationError:  # `null` is absent for the API; only where it stands do we pay for that
        stripped = _without_nulls(item)
    try:
        return model.model_validate(stripped)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        key = raw_key(item)
        raise InputError(
            f"field {field}: {first['msg']}",
            where=f"{kind} {key if key else '(unnamed)'}",
            advice="the object is ignored until it changes",
        ) from error


def _without_nulls(value: object, depth: int = 0) -> object:
    """The same without keys whose value is null, and without what is nested too deeply."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {key: _without_nulls(inner, depth + 1) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner, depth + 1) for inner in value]
    return value


def _loads(body: bytes) -> Any:
    """Decoded JSON. The decoder refuses as a whole what is nested deeper than 1024, and an API server takes
    ten times that: so that one such object does not hide all others of its list, its depths are cut out."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth" not in str(error):
            raise
        return orjson.loads(_shallow(body))


def _shallow(body: bytes) -> bytes:
    """JSON text with `null` for every value that is nested too deeply. Text that is no JSON stays so."""
    kept: list[bytes] = []
    depth, begins = 0, 0
    for match in _BRACKET.finditer(body):
        if match[0][:1] == b'"':
            continue
        if match[0] in b"{[":
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += [body[begins : match.start()], b"null"]
                begins = len(body)
        else:
            depth -= 1
            if depth == MAX_DEPTH:
                begins = match.end()
    return b"".join([*kept, body[begins:]])


def raw_key(item: object) -> ObjectKey | None:
    """Namespace and name of a decoded object that may be malformed; None where it has no name."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return None
    namespace = metadata.get("namespace")
    return ObjectKey(namespace if isinstance(namespace, str) else "", metadata["name"])


__all__ = [
    "MODELS",
    "Condition",
    "Page",
    "SlimAscendJob",
    "SlimConfigMap",
    "SlimNode",
    "SlimObject",
    "SlimPod",
    "SlimPodGroup",
    "SlimT",
    "decode_json",
    "raw_key",
    "slim",
    "version_number",
]
