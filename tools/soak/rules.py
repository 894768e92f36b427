"""The judge of a simulated history: that of the engine's tests, and what only whole histories show.

Each complaint names the promise that was broken by its number (the list in docs/testing.md). The judge reads
requests as they leave, objects as stored and the audit log of the embedded API server, never the product's
own words, with the exception that is part of the promise: ledgers as last written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tools.soak.judges import Judge, Object

MS_JOBS = ("mindie-ms-controller", "mindie-ms-coordinator")


@dataclass
class SoakJudge(Judge):
    """See the module."""

    newest: dict[tuple[str, str], int] = field(default_factory=dict)  # peer, jobID -> newest index it has
    asked: set[str] = field(default_factory=set)  # UIDs of pods whose deletion was sent
    addresses: dict[str, str] = field(default_factory=dict)  # of pods whose deletion was sent -> UID
    audited: int = 0

    def wrong(self, promise: int, what: str) -> None:
        """Complain about a promise of the list."""
        self._wrong(f"[{promise}] {what}")

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
        job = (pod["metadata"].get("ownerReferences") or [{}])[0].get("name", "")
        recovery = self.ledger_of(namespace, job).get("recovery") or {}
        if job in MS_JOBS and recovery.get("rung") == "pod" and "deletionTimestamp" not in pod["metadata"]:
            self._peer_must_serve(namespace, job, pod)

    def _peer_must_serve(self, namespace: str, job: str, pod: Object) -> None:
        """A pod rung that takes a replica which runs leaves another one that runs."""
        if not self._runs(pod):
            return
        stored = self.server.core.store.collection(("", "pods"))
        peers = [
            one.obj
            for _, one in stored.iterate(namespace)
            if (one.obj["metadata"].get("ownerReferences") or [{}])[0].get("name") == job
            and one.obj["metadata"]["uid"] != pod["metadata"]["uid"]
        ]
        if not any(self._runs(peer) for peer in peers):
            self.wrong(3, f"{namespace}/{job}: the pod rung deletes the last replica that runs")

    def _runs(self, pod: Object) -> bool:
        node = self._get("Node", "", pod["spec"].get("nodeName", "")) or {}
        conditions = node.get("status", {}).get("conditions", ())
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        running = pod.get("status", {}).get("phase") == "Running"
        return ready and running and "deletionTimestamp" not in pod["metadata"]

    def _table_moved(self, old: Object, new: Object) -> None:
        super()._table_moved(old, new)
        before, now = _listed(old), _listed(new)
        stored = self.server.core.store.collection(("", "pods"))
        living = {
            one.obj.get("status", {}).get("podIP"): one.obj["metadata"]["uid"]
            for _, one in stored.iterate(new.get("namespace", ""))
        }
        for group, addresses in now.items():
            for address in addresses - before.get(group, set()):
                uid = living.get(address) or self.addresses.get(address, "")
                if uid in self.deleted:
                    self.wrong(
                        4, f"generation {new['generation']} newly lists {address}, whose pod we deleted"
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


def _listed(ledger: Object) -> dict[str, set[str]]:
    """Group -> addresses of its servers in a service ledger."""
    groups = json.loads(ledger["text"])["server_group_list"] if ledger.get("text") else ()
    return {group["group_id"]: {server["server_ip"] for server in group["server_list"]} for group in groups}


__all__ = ["SoakJudge"]
