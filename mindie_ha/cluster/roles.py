"""What was heard of MS pods: answers of their endpoints, and who holds a rank table stream.

Nothing here outlives the process: after a restart everybody is asked anew. What is remembered is dropped with
the pod or the service it belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from mindie_ha.kit.clock import Clock
from mindie_ha.model.ids import PodUID, ScopeKey
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod
from mindie_ha.model.roles import Activity, Links, PodRole, Streams, Told
from mindie_ha.model.workloads import Role, Workload
from mindie_ha.policy import activity


class RoleMemory:
    """See the module. One event loop; nothing awaits."""

    def __init__(self, *, clock: Clock, patience_s: float) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._listening_since_s = clock.wall()
        self._told: dict[PodUID, Told] = {}
        self._links: dict[PodUID, Links] = {}
        self._seen: set[PodUID] = set()  # pods that links were looked up for
        self._known: dict[PodUID, tuple[Role, PodRole]] = {}
        self._streams: dict[ScopeKey, Counter[str]] = {}
        self._left_s: dict[ScopeKey, float] = {}

    # -- what is heard -------------------------------------------------------------------------------

    def tell(self, uid: PodUID, told: Told) -> bool:
        """A pod's endpoints answered; True if that is news. One that is gone meanwhile is not remembered."""
        if uid not in self._known and uid not in self._seen:
            return False
        news = self._told.get(uid) != told
        self._told[uid] = told
        if told.peers is not None or uid in self._links:
            self._linked(uid, told)
        return news

    def joined(self, scope: ScopeKey, ip: str) -> None:
        """A rank table stream was opened from `ip`."""
        self._streams.setdefault(scope, Counter())[ip] += 1

    def left(self, scope: ScopeKey, ip: str) -> None:
        """A rank table stream from `ip` ended."""
        open_now = self._streams.get(scope, Counter())
        open_now[ip] -= 1
        self._left_s[scope] = self._clock.wall()
        if open_now[ip] <= 0:
            del open_now[ip]
        if not open_now:
            self._streams.pop(scope, None)

    def forget(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._told.pop(uid, None)
        self._links.pop(uid, None)
        self._seen.discard(uid)
        self._known.pop(uid, None)

    def forget_scope(self, scope: ScopeKey) -> None:
        """A service is gone."""
        self._left_s.pop(scope, None)

    # -- what is known -------------------------------------------------------------------------------

    def streams(self, scope: ScopeKey) -> Streams:
        """The rank table streams of a service."""
        return Streams(
            ips=frozenset(self._streams.get(scope, ())),
            listening_since_s=self._listening_since_s,
            left_s=self._left_s.get(scope),
        )

    def links_of(self, pods: Iterable[Pod]) -> dict[PodUID, Links]:
        """What server pods said of their links; nothing of those that never did."""
        uids = [pod.uid for pod in pods]
        self._seen.update(uids)
        return {uid: self._links[uid] for uid in uids if uid in self._links}

    def roles_of(
        self, workload: Workload, pods: Iterable[Pod], *, nodes: Mapping[str, Node], ledger: WorkloadLedger
    ) -> dict[PodUID, PodRole]:
        """Who of an MS workload is active; empty for other roles."""
        now_s = self._clock.wall()
        sources = activity.Sources(
            nodes=nodes,
            told=self._told,
            streams=self.streams(workload.scope),
            subscribed_before=bool(ledger.subscribed_uid),
            patience_s=self._patience_s,
            now_s=now_s,
        )
        words = activity.judge(workload.role, pods, sources)
        return {uid: self._dated(workload.role, uid, word, now_s) for uid, word in words.items()}

    def count(self, role: Role, what: Activity) -> int:
        """How many pods of a role are that."""
        return sum(1 for found, known in self._known.values() if (found, known.activity) == (role, what))

    def _linked(self, uid: PodUID, told: Told) -> None:
        before = self._links.get(uid)
        if before is None or before.peers != told.peers:
            self._links[uid] = Links(told.peers, self._clock.wall())

    def _dated(self, role: Role, uid: PodUID, word: Told, now_s: float) -> PodRole:
        before = self._known.get(uid)
        same = before is not None and before[1].activity is word.activity
        since_s = before[1].since_s if same and before is not None else now_s
        known = PodRole(
            word.activity, word.reason, since_s, word.healthy, word.subscribed, serves=word.serves
        )
        self._known[uid] = (role, known)
        return known


__all__ = ["RoleMemory"]
