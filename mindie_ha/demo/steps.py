"""The steps of a scenario, as they stand in its file: what breaks, what returns, what a person does, waits.

Cards are counted under a pod and nodes are named by a pod, so that no scenario depends on where the scheduler
put anything. `under` is the node of the pod (of one that waits for a place: the node before), `was_under` the
node it had when the first fault was set, for what comes after the pod has left. Levels are the words of each
source (`docs/scenarios.md`).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]+/[a-z0-9.-]+$")]
FaultId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{6,62})[a-z0-9]$")]
WITHIN_S = 120.0


class Strict(BaseModel):
    """Base of everything in a scenario file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ChipFault(Strict):
    """A card goes bad: the `card`-th of those that `under` holds, counted from 1. `cards`: these instead,
    all at the same moment."""

    under: Name
    card: int = Field(1, ge=1)
    cards: tuple[Annotated[int, Field(ge=1)], ...] = ()
    code: str = "80E18005"
    level: str = "SeparateNPU"


class SwitchFault(Strict):
    """A switch in the A3 server under a pod reports a fault."""

    under: Name
    code: str = "[0x08520003,na,npu,na]"
    level: str = "Separate"
    chip: int = Field(0, ge=0)
    port: int = Field(0, ge=0)


class BoardFault(Strict):
    """NodeD reports an alarm of the board under a pod."""

    under: Name
    device: str = "Leakage Detection Card"
    code: str = "2C000031"
    level: str = "SeparateFault"


class NodeFault(Strict):
    """The node under a pod stops reporting; those under the pods `also` at the same moment."""

    under: Name
    also: tuple[Name, ...] = ()


class Flap(Strict):
    """The node under a pod is NotReady for a while, again and again."""

    under: Name
    not_ready_s: float = Field(8.0, gt=0)
    ready_s: float = Field(8.0, gt=0)
    times: int = Field(5, ge=1, le=100)


class ManyNodes(Strict):
    """So many nodes stop reporting at the same time, those with the most pods first."""

    count: int = Field(ge=1)


class NodeDeleted(Strict):
    """The Node object under a pod is deleted."""

    under: Name


class NodeWas(Strict):
    """The node that a pod had at the first fault."""

    was_under: Name


class Mark(Strict):
    """An annotation of the node under a pod; without `value` it is taken away."""

    under: Name
    key: str = Field(min_length=1)
    value: str | None = None


class PublicFault(Strict):
    """Somebody outside reports a fault of cards under a pod, by a labelled ConfigMap."""

    id: FaultId
    under: Name
    cards: tuple[Annotated[int, Field(ge=1)], ...] = Field((1,), min_length=1)
    code: str = "220001001"
    type: Literal["NPU", "Node", "Network", "Storage"] = "NPU"
    resource: str = "CCAE"


class Exit(Strict):
    """The process of a pod ends by itself."""

    pod: Name
    code: int = Field(1, ge=0, le=255)


class Finalizer(Strict):
    """Somebody puts a finalizer on a pod and never takes it off."""

    pod: Name
    name: str = Field("example.com/never", pattern=r"^[a-z0-9.-]+/[a-z0-9.-]+$")


class CrashLoop(Strict):
    """From now on new pods of this replica spec of an AscendJob crash after each start."""

    workload: Name
    replica: str = "Master"
    code: int = Field(1, ge=0, le=255)


class Pause(Strict):
    """A person pauses a scope: `cluster`, `namespace/NS` or `service/NS/JOBID`."""

    scope: str
    reason: str = "work on the switches"
    for_s: float | None = Field(None, gt=0)


class EventCount(Strict):
    """Our Kubernetes Events of a reason, repetitions counted; `about` a kind of object, empty: any."""

    reason: str = Field(min_length=1)
    about: str = ""
    times: int = Field(1, ge=0)


class WaitUntil(Strict):
    """Wait for one thing to be seen; not in time is a complaint of the judge."""

    status_says: str | None = None
    event: EventCount | None = None
    tainted: NodeWas | None = None
    released: NodeWas | None = None
    recovered: Name | None = None
    within_s: float = Field(WITHIN_S, gt=0)

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        _exactly_one(self, "wait_until waits for one thing", without="within_s")
        return self


class Step(Strict):
    """One step; exactly one of its keys is given."""

    chip: ChipFault | None = None
    switch: SwitchFault | None = None
    board: BoardFault | None = None
    public_fault: PublicFault | None = None
    public_fault_over: FaultId | None = None
    node_not_ready: NodeFault | None = None
    nodes_not_ready: ManyNodes | None = None
    flap: Flap | None = None
    node_deleted: NodeDeleted | None = None
    node_returns: NodeWas | None = None
    annotate: Mark | None = None
    exit: Exit | None = None
    finalizer: Finalizer | None = None
    finalizer_gone: Name | None = None
    crash_loop: CrashLoop | None = None
    crash_loop_over: Name | None = None
    pause: Pause | None = None
    resume: str | None = None
    untaint: NodeWas | None = None
    repair: NodeWas | None = None
    heal: Literal["all"] | None = None
    wait_s: float | None = Field(None, gt=0)
    wait_until: WaitUntil | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        _exactly_one(self, "a step does one thing")
        return self


def _exactly_one(model: Strict, rule: str, *, without: str = "") -> None:
    names = [name for name in type(model).model_fields if name != without]
    if len([name for name in names if getattr(model, name) is not None]) != 1:
        raise ValueError(f"{rule}, one of {', '.join(names)}")


MODELS: dict[int | str, type[BaseModel]] = {
    "steps": Step,
    "chip": ChipFault,
    "switch": SwitchFault,
    "board": BoardFault,
    "public_fault": PublicFault,
    "node_not_ready": NodeFault,
    "nodes_not_ready": ManyNodes,
    "flap": Flap,
    "node_deleted": NodeDeleted,
    "node_returns": NodeWas,
    "annotate": Mark,
    "exit": Exit,
    "finalizer": Finalizer,
    "crash_loop": CrashLoop,
    "pause": Pause,
    "untaint": NodeWas,
    "repair": NodeWas,
    "wait_until": WaitUntil,
    "event": EventCount,
    "tainted": NodeWas,
    "released": NodeWas,
}
"""What stands under a key of a step; for "did you mean"."""

__all__ = [
    "MODELS",
    "BoardFault",
    "ChipFault",
    "CrashLoop",
    "EventCount",
    "Exit",
    "FaultId",
    "Finalizer",
    "Flap",
    "ManyNodes",
    "Mark",
    "Name",
    "NodeDeleted",
    "NodeFault",
    "NodeWas",
    "Pause",
    "PublicFault",
    "Step",
    "Strict",
    "SwitchFault",
    "WaitUntil",
]
