"""The judge of a simulated history: that of the engine's tests, and what only whole histories show.

Each complaint names the promise that was broken by its number (the list in docs/testing.md). The judge reads
requests as they leave, objects as stored and the audit log of the embedded API server, never the product's
own words, with the exception that is part of the promise: ledgers as last written.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import datetime

from mindie_ha.sim.requests import ApiRequest
from mindie_ha.sim.storage import Change, Kind
from tools.soak.judges import Judge, Object
from tools.soak.tenants import MS_JOBS

CONFIGURATION = "ascend.kubectl.kubernetes.io/ascend-910-configuration"
LEASE_NAMESPACE, LEASE = "mindx-dl", "mindie-ha"
HELD = "HeldByPause"
SLACK_S = 0.001  # times in a Lease are whole microseconds
FIRST_SERVER_GROUP = 2
LEARNS_WITHIN_S = 150.0  # the longest silence of a watch in a history, and a little more


@dataclass
class SoakJudge(Judge):
    """See the module."""

    newest: dict[tuple[str, str], int] = field(default_factory=dict)  # peer, jobID -> newest index it has
    asked: set[str] = field(default_factory=set)  # UIDs of pods whose deletion was sent
    addresses: dict[str, str] = field(default_factory=dict)  # of pods whose deletion was sent -> UID
    audited: int = 0
    _held: dict[str, set[tuple[str, float]]] = field(default_factory=dict)  # workload -> pauses that hold it
    _closed: dict[str, float] = field(default_factory=dict)  # node -> when it closed; infinite: it is open

    def wrong(self, promise: int, what: str) -> None:
        """Complain about a promise of the list."""
        self._wrong(f"[{promise}] {what}")

    @property
    def recoveries(self) -> int:
        """How many were opened, over all workloads."""
        return sum(self._epochs.values())

    def sent(self, who: str, request: ApiRequest) -> None:
        """A controller sends a write: it must hold the Lease, and not for too long."""
        lease = (self._get("Lease", LEASE_NAMESPACE, LEASE) or {}).get("spec", {})
        holder = lease.get("holderIdentity") or "nobody"
        what = f"{request.method} {request.path}"
        if holder != who:
            self.wrong(2, f"{who} writes though {holder} leads: {what}")
            return
        renewed_s = datetime.fromisoformat(lease["renewTime"]).timestamp()
        late_s = self.server.core.clock.wall() - renewed_s - lease["leaseDurationSeconds"]
        if late_s > SLACK_S:
            self.wrong(2, f"{who} writes {late_s:.3f} s after its Lease ran out: {what}")

    def received(self, peer: str, job_id: str, text: str) -> None:
        """A Controller was given a table."""
        known = next((texts for (_, job), texts in self._tables.items() if job == job_id), [])
        if text not in known:
            self.wrong(4, f"{peer} was given a table of {job_id} that no ledger holds")
            return
        index = len(known) - 1 - known[::-1].index(text)
        if index < self.newest.get((peer, job_id), 0):
            self.wrong(4, f"{peer} was given generation {index + 1} of {job_id} after a newer one")
        self.newest[peer, job_id] = index

    def _deleting(self, namespace: str, name: str, body: Object) -> None:
        super()._deleting(namespace, name, body)
        pod = self._get("Pod", namespace, name)
        uid = body.get("preconditions", {}).get("uid")
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        self.asked.add(uid)
        self.addresses[pod.get("status", {}).get("podIP", "")] = uid
        job = _owner(pod)
        recovery = self.ledger_of(namespace, job).get("recovery") or {}
        if job in MS_JOBS and "deletionTimestamp" not in pod["metadata"] and self._runs(pod):
            self._serving_replica_goes(namespace, job, pod, rung=recovery.get("rung", ""))

    def _serving_replica_goes(self, namespace: str, job: str, pod: Object, *, rung: str) -> None:
        """The pod rung leaves another one that runs; the job rung leaves none, so it must find a place."""
        stored = self.server.core.store.collection(("", "pods"))
        replicas = [one.obj for _, one in stored.iterate(namespace) if _owner(one.obj) == job]
        peers = [one for one in replicas if one["metadata"]["uid"] != pod["metadata"]["uid"]]
        if rung == "pod" and not any(map(self._runs, peers)):
            self.wrong(3, f"{namespace}/{job}: the pod rung deletes the last replica that runs")
        if rung == "job" and peers and len(self._open_nodes()) < len(replicas):
            nodes = f"{len(self._open_nodes())} nodes have been open of late"
            self.wrong(3, f"{namespace}/{job}: a replica that serves is deleted, and {nodes} for the job")

    def _open_nodes(self) -> list[str]:
        """Nodes that take new pods, or did so lately: a controller may learn late that one does not."""
        now_s = self.server.core.clock.monotonic()
        return [name for name, closed_s in self._closed.items() if now_s - closed_s < LEARNS_WITHIN_S]

    def _recovery_moved(self, who: str, before: Object, after: Object) -> None:
        super()._recovery_moved(who, before, after)
        if after["condition"] == HELD != before["condition"]:
            self._held[who] = self._pauses(who)
        if (before["phase"], after["phase"]) == ("backoff", "stop"):
            standing = self._pauses(who)
            by_s = self.server.core.clock.wall() - LEARNS_WITHIN_S
            known = standing & self._held.get(who, set()) | {one for one in standing if one[1] < by_s}
            for scope, _ in sorted(known):
                self.wrong(1, f"{who}: deletions begin though {scope} is paused, as its controller knows")

    def _pauses(self, who: str) -> set[tuple[str, float]]:
        """Scope and beginning of the pauses that stand for a workload."""
        ledger = self.remembered(LEASE_NAMESPACE, "mindie-ha-pauses")
        now_s = self.server.core.clock.wall()
        scopes = ("cluster", f"namespace/{who.split('/')[-2]}")
        return {
            (one["scope"], one["since_s"])
            for one in ledger.get("pauses", ())
            if one["scope"] in scopes and (one["ends_at_s"] is None or now_s < one["ends_at_s"])
        }

    def _changed(self, kind: Kind, change: Change) -> None:
        super()._changed(kind, change)
        if kind != ("", "nodes"):
            return
        node = change.now.obj
        kept_away = any(taint["effect"] != "PreferNoSchedule" for taint in node["spec"].get("taints") or ())
        closed = (
            change.type == "DELETED" or kept_away or not _is_ready(node) or node["spec"].get("unschedulable")
        )
        name = change.key[1]
        if not closed:
            self._closed[name] = math.inf
        elif self._closed.get(name) == math.inf:
            self._closed[name] = self.server.core.clock.monotonic()

    def _runs(self, pod: Object) -> bool:
        node = self._get("Node", "", pod["spec"].get("nodeName", "")) or {}
        running = pod.get("status", {}).get("phase") == "Running"
        return _is_ready(node) and running and "deletionTimestamp" not in pod["metadata"]

    def _table_moved(self, old: Object, new: Object) -> None:
        super()._table_moved(old, new)
        stored = self.server.core.store.collection(("", "pods"))
        living = {
            one.obj.get("status", {}).get("podIP"): one.obj
            for _, one in stored.iterate(new.get("namespace", ""))
        }
        before = _listed(old)
        for address, cards in _listed(new).items():
            pod = living.get(address)
            uid = pod["metadata"]["uid"] if pod is not None else self.addresses.get(address, "")
            if address not in before and uid in self.deleted:
                self.wrong(4, f"generation {new['generation']} newly lists {address}, whose pod we deleted")
            if before.get(address) != cards and pod is not None and cards != _cards(pod):
                self.wrong(
                    4, f"generation {new['generation']} lists cards of {address} that are not its pod's"
                )

    def look(self) -> None:
        """After every step: what the audit log says that was deleted in our name was asked for by UID."""
        entries = self.server.audit
        for entry in list(entries)[self.audited :]:
            ours = entry.user_agent.startswith("mindie-ha") and entry.code < 300 and not entry.dry_run
            deleted = entry.verb.startswith("delete") and entry.resource == "pods"
            if ours and deleted and entry.uid not in self.asked:
                self.wrong(1, f"pod {entry.namespace}/{entry.name} ({entry.uid}) was deleted unasked")
        self.audited = len(entries)


def _owner(pod: Object) -> str:
    owners: list[Object] = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _listed(ledger: Object) -> dict[str, set[str]]:
    """Server address -> addresses of its cards in a service ledger."""
    groups = json.loads(ledger["text"])["server_group_list"] if ledger.get("text") else ()
    return {
        server["server_ip"]: {card["device_ip"] for card in server.get("device", ())}
        for group in groups
        if int(group["group_id"]) >= FIRST_SERVER_GROUP
        for server in group["server_list"]
    }


def _cards(pod: Object) -> set[str]:
    """The same as the device plugin wrote it on the pod."""
    text = (pod["metadata"].get("annotations") or {}).get(CONFIGURATION, "{}")
    return {card["device_ip"] for card in json.loads(text).get("devices", ())}


__all__ = ["SoakJudge"]
