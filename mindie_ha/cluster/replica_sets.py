"""Which Deployment the pods of a ReplicaSet belong to.

A pod names its ReplicaSet, and that its Deployment. The three come by three watches in any order, so nothing
is copied: who asks for the owner of a pod is led on from the ReplicaSet, if it is known by then.
"""

from __future__ import annotations

from mindie_ha.cluster.indexes import Index


class ReplicaSets:
    """UIDs of ReplicaSets and of their Deployments."""

    def __init__(self) -> None:
        self._makers: dict[str, str] = {}
        self._made: Index[str, str] = Index()

    def put(self, uid: str, maker_uid: str) -> bool:
        """A ReplicaSet as it is now; whether that is news."""
        if self._makers.get(uid) == maker_uid:
            return False
        self.drop(uid)
        self._makers[uid] = maker_uid
        self._made.add(maker_uid, uid)
        return True

    def drop(self, uid: str) -> str:
        """A ReplicaSet is gone; whose it was, "" if it was not known."""
        maker_uid = self._makers.pop(uid, "")
        self._made.discard(maker_uid, uid)
        return maker_uid

    def maker_of(self, owner_uid: str) -> str:
        """The workload behind the owner of a pod."""
        return self._makers.get(owner_uid, owner_uid)

    def owners_for(self, workload_uid: str) -> tuple[str, ...]:
        """Everything that owns pods of a workload, itself first."""
        return (workload_uid, *self._made.of(workload_uid))


__all__ = ["ReplicaSets"]
