"""What a scenario expects, as it stands in its file. What is not named must not have happened."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

from mindie_ha.demo.steps import EventCount, Name, Strict
from mindie_ha.model.recoveries import Outcome

Channel = Literal["configmap", "grpc", "http"]
ALL_CHANNELS: tuple[Channel, ...] = ("configmap", "grpc", "http")


class ExpectedRecovery(Strict):
    """One recovery: all pods of `workload` deleted and replaced, by these rungs in order.

    `only`: these pods alone, the others keep their UIDs. `after_s`: it was opened this long after the first
    fault, not earlier; `deletes_after_s`: so long nothing of it was deleted.
    """

    workload: Name
    cause: str = ""
    rungs: tuple[str, ...] = ("job",)
    outcome: Outcome = Outcome.RECOVERED
    only: tuple[Name, ...] = ()
    after_s: float = Field(0.0, ge=0)
    deletes_after_s: float = Field(0.0, ge=0)


class ExpectedHold(Strict):
    """The new pods of `instance` are in no table before those of `until` are."""

    instance: Name
    until: Name


class ExpectedActive(Strict):
    """Who of an MS workload is active at the first fault, and who in the end. The same pod twice: it never
    stops being the active one, nor is anybody else; another one: the pod that stood by then."""

    workload: Name
    before: Name
    after: Name


class TaintStory(StrEnum):
    """What became of our taint on a node from the first fault on."""

    NEVER = "never"  # it was never set
    STANDING = "standing"  # it stands in the end
    RELEASED = "released"  # it was set, and we took it off
    OVERRULED = "overruled"  # it was set, a person took it off, and it was not set again


class ExpectedTaint(Strict):
    """Our taint on the node that a pod had at the first fault."""

    was_under: Name
    story: TaintStory


class Expect(Strict):
    """What must have happened. What is not named must not have happened.

    `our_deletions`: pods that we deleted ourselves, the others having been deleted by somebody else.
    `tables`: distinct digests from the first fault on, the table in force at that moment included.
    `status_said`: texts that the status showed at some time; `states`: states it showed of a workload.
    `at_once`: so many recoveries, at the most, were between first deletion and end at the same time.
    `parked`: workloads that in the end wait for a person, whatever their last recovery came to.
    Every workload without a recovery is untouched.
    """

    recoveries: tuple[ExpectedRecovery, ...]
    nothing_deleted: bool = False
    at_once: int | None = Field(None, ge=1)
    our_deletions: int | None = Field(None, ge=0)
    tables: int | None = Field(None, ge=1)
    channels: tuple[Channel, ...] = ALL_CHANNELS
    held: tuple[ExpectedHold, ...] = ()
    actives: tuple[ExpectedActive, ...] = ()
    taints: tuple[ExpectedTaint, ...] = ()
    events: tuple[EventCount, ...] = ()
    status_said: tuple[str, ...] = ()
    states: dict[Name, tuple[str, ...]] = Field(default_factory=dict)
    failed_jobs: tuple[Name, ...] = ()
    parked: tuple[Name, ...] = ()
    retries_spent: dict[Name, int] = Field(default_factory=dict)


MODELS: dict[int | str, type[BaseModel]] = {
    "expect": Expect,
    "recoveries": ExpectedRecovery,
    "held": ExpectedHold,
    "actives": ExpectedActive,
    "taints": ExpectedTaint,
    "events": EventCount,
}
"""What stands under a key of `expect`; for "did you mean"."""

__all__ = [
    "ALL_CHANNELS",
    "MODELS",
    "Channel",
    "Expect",
    "ExpectedActive",
    "ExpectedHold",
    "ExpectedRecovery",
    "ExpectedTaint",
    "TaintStory",
]
