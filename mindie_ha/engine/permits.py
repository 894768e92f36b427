"""The last word before a deletion leaves: whether the job is still ours to delete.

A decision rests on what was seen when it was made; a deletion that the API server refuses for a while is sent
again for seconds. In between a person may take the label away, a platform may put its annotation, or the
PodGroup that said that we adopted it may be replaced. So the same claim is asked again, from the cache, with
nothing awaited between the answer and the request. What is left is the lag of the watch.
"""

from __future__ import annotations

from typing import Protocol

from mindie_ha.model.decisions import DeletePod
from mindie_ha.model.errors import NotPermitted
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.pods import Pod
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import PodGroup, Workload
from mindie_ha.policy.ownership import Ownership, claim


class Facts(Protocol):
    """What is known now (the store)."""

    def pod(self, key: ObjectKey) -> Pod | None:
        """A pod by namespace and name."""
        ...

    def workload_of_uid(self, uid: str) -> Workload | None:
        """A workload by its UID."""
        ...

    def podgroup(self, key: ObjectKey) -> PodGroup | None:
        """A PodGroup by namespace and name."""
        ...


class Permits:
    """See the module."""

    def __init__(self, *, facts: Facts, settings: Settings) -> None:
        self._facts = facts
        self._settings = settings

    def check(self, action: DeletePod) -> None:
        """Return where the deletion may still be sent; raises NotPermitted. Never awaits."""
        pod = self._facts.pod(action.key)
        if pod is None or pod.uid != action.uid:
            return  # nothing left to protect: the precondition on the UID stands
        workload = self._facts.workload_of_uid(pod.owner_uid)
        if workload is None:
            raise NotPermitted(f"pod {action.key}: its owner is gone")
        group = self._facts.podgroup(workload.podgroup)
        standing = claim(workload, group, settings=self._settings)
        if not standing.acts:
            raise NotPermitted(f"pod {action.key}: its job is not ours any more ({standing.ownership})")
        if action.adopted and standing.ownership is not Ownership.ADOPTED:
            raise NotPermitted(f"pod {action.key}: the PodGroup is not seen as adopted any more")


__all__ = ["Facts", "Permits"]
