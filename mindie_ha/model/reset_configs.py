"""`reset-config-<job>`: the mailbox between scheduler, device plugin and the agents in training pods."""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.ids import ObjectKey

RESET_CONFIG_PREFIX = "reset-config-"
HOLDING_POLICIES = frozenset({"reset", "restart"})  # the device plugin is at work on the card


def name_of(job: str) -> str:
    """The name of the mailbox of a job."""
    return f"{RESET_CONFIG_PREFIX}{job}"


@dataclass(frozen=True, slots=True)
class RankReset:
    """What the device plugin, or ClusterD, wrote of one rank."""

    rank: int
    status: str = ""  # fault, unrecovered, recovered, failed
    policy: str = ""  # ignore, restart_request, restart, free_reset, reset, isolate


@dataclass(frozen=True, slots=True)
class ResetConfig:
    """The ConfigMap as read; `error` says why its content counts for nothing."""

    key: ObjectKey
    retry_time: int = 0  # generation of pod-level rescheduling; survivors join again when it grows
    graceful_exit: bool = False
    ranks: tuple[RankReset, ...] = ()
    restart_type: str = ""  # podReschedule, hotReset
    error: str = ""

    @property
    def held(self) -> bool:
        """Whether a card is being reset under the job, so that nobody else may write."""
        return any(rank.policy in HOLDING_POLICIES for rank in self.ranks)
