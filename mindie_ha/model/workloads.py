"""The unit that is recovered: one AscendJob, vcjob, or StatefulSet/Deployment instance.

Labels are kept as they came; what they mean is decided in `policy/ownership.py`, in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from mindie_ha.model.ids import ObjectKey, ScopeKey, job_key, service_key
from mindie_ha.model.ranktables import PdRole

LABEL_APP = "app"
LABEL_JOB_ID = "jobID"
ASCEND_JOB_KIND = "AscendJob"


class Role(str):
    """What a workload does in its service. A word, not a closed list: whoever brings ladders for another role
    names it, and everything that is not told otherwise about it treats it as a job by itself."""

    __slots__ = ()
    SERVER: ClassVar[Role]
    CONTROLLER: ClassVar[Role]
    COORDINATOR: ClassVar[Role]
    TRAINING: ClassVar[Role]


Role.SERVER = Role("server")
Role.CONTROLLER = Role("controller")
Role.COORDINATOR = Role("coordinator")
Role.TRAINING = Role("training")

ROLES_BY_APP: Mapping[str, Role] = MappingProxyType(  # by the label `app`; without one it trains
    {
        "mindie-ms-server": Role.SERVER,
        "mindie-ms-controller": Role.CONTROLLER,
        "mindie-ms-coordinator": Role.COORDINATOR,
    }
)


@dataclass(frozen=True, slots=True)
class Maker:
    """What makes a workload's object anew, under the same name, when somebody deletes it: an InstanceSet."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload as its owner object describes it."""

    key: ObjectKey
    uid: str
    kind: str  # "AscendJob", "Job" (Volcano), "StatefulSet" or "Deployment"
    role: Role
    pd_role: PdRole  # shown, and used for the peer hold of a table; never for a decision about pods
    job_id: str  # label jobID; empty for a workload without service
    replicas: int  # pods wanted over all replica types
    restart_policy: str = "Never"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    table_config_map: str = ""  # ConfigMap behind the volume `global-ranktable` of the pods
    op_retry_s: float = 0.0  # its programs need so long to get over a link fault; 0: they do not, or unknown
    failed: bool = False  # the owner declared it terminally Failed
    failed_message: str = ""
    deleting: bool = False
    created_at_s: float = 0.0
    service: str = ""  # label of the infer-operator: instances of one inference service without a rank table
    maker: Maker | None = None  # None: the object is the user's own, and its end is the workload's
    bound: bool = True  # its pods are one communication domain; False: each stands for itself

    @property
    def ranks_together(self) -> bool:
        """Whether one pod lost means all are lost: ranks of one instance. MS pods stand alone."""
        return self.bound and self.role in (Role.SERVER, Role.TRAINING)

    @property
    def keeper_uid(self) -> str:
        """UID of the object that its memory lives as long as."""
        return self.maker.uid if self.maker is not None else self.uid

    @property
    def scope(self) -> ScopeKey:
        """The queue key under which it is reconciled."""
        if self.role is not Role.TRAINING and self.job_id:
            return service_key(self.key.namespace, self.job_id)
        return job_key(ObjectKey(self.key.namespace, self.service) if self.service else self.key)

    @property
    def podgroup(self) -> ObjectKey:
        """The PodGroup that the Ascend Operator creates for it."""
        return ObjectKey(self.key.namespace, f"{self.key.name}-{self.uid}")


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Volcano's gang object, as far as ownership needs it."""

    key: ObjectKey
    uid: str
    phase: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class RingsConfig:
    """The ConfigMap `rings-config-<job>` as read: its raw table and its labels."""

    key: ObjectKey
    text: str | None  # data["hccl.json"]
    labels: Mapping[str, str] = field(default_factory=dict)
    changed_at_s: float = 0.0  # when we first saw this text
