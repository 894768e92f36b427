"""What must never happen, judged from the API server's side while a test or a simulated history runs.

The judge sits in the doorway between the controller and the server, and listens to the server's store. It
reads raw objects and requests, never our own models or reports, so that it cannot share their mistakes:

* a pod is deleted only by UID, while a recovery of its owner is open and names it as a target in the ledger
  as stored at that moment, and never twice;
* a ledger's epoch rises by one with each recovery, one recovery ends before the next begins, what was
  spent never grows back, targets grow only before deletions;
* a table is one that MS Controller's loader takes, its generation only rises, ids stay, and nothing is
  delivered that was not recorded first;
* on a node only our own taint changes, and only with a record of it; nothing else is written at all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from mindie_ha.sim.ms.loaders import load
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.storage import Change, Kind

Object = dict[str, Any]
TAINT = "mindie-ha.io/isolated"
MS_STATE = "mindie-ha.io/ms-state"
MANAGED = ("force", "grace", "external-force", "external-grace")
BEFORE_DELETION = ("isolate", "backoff", "stop")


@dataclass(frozen=True, slots=True)
class Write:
    """One write that the controller sent, and how it ended (0: no answer)."""

    at_s: float
    method: str
    path: str
    body: Object
    code: int


@dataclass(slots=True)
class Judge:
    """Collects what was wrong; `verdict` raises it."""

    server: ApiServer
    violations: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    deleted: dict[str, int | None] = field(default_factory=dict)  # UID -> grace of the accepted deletion
    tampered: set[str] = field(default_factory=set)  # ConfigMaps that the test itself breaks
    _tables: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # service -> texts as recorded
    _delivered: dict[tuple[str, str], int] = field(default_factory=dict)  # ConfigMap -> index of its text
    _epochs: dict[str, int] = field(default_factory=dict)  # workload UID -> highest epoch

    def __post_init__(self) -> None:
        self.server.core.store.listen(self._changed)

    def verdict(self) -> None:
        """Fail with everything that was seen."""
        if self.violations:
            raise AssertionError("\n".join(self.violations))

    # -- requests of the controller -----------------------------------------------------------------

    def before(self, request: ApiRequest) -> None:
        """A write is about to be carried out."""
        place = request.path.split("/namespaces/")[-1].split("/")
        match request.method, place[-2:]:
            case "DELETE", ["pods", name]:
                self._deleting(place[0], name, _body(request))
            case "PATCH", ["nodes", name]:
                self._tainting(name, _body(request))
            case "PATCH", ["ascendjobs" | "jobs", name]:
                self._labelling(name, _body(request))
            case "PATCH", ["pods", name]:
                self._labelling_pod(place[0], name, _body(request))
            case "PATCH", ["podgroups", name]:
                self._adopting(place[0], name, _body(request))
            case (("PUT" | "PATCH"), ["configmaps", name]):
                self._known_map(place[0], name, request)
            case "POST", [namespace, "configmaps"]:
                self._known_map(namespace, _body(request)["metadata"]["name"], request)
            case ("POST", [_, "events"]) | ("PATCH", ["events", _]):
                pass
            case "POST", [_, kind] if kind.endswith("reviews"):
                pass  # a question
            case _:
                self._wrong(f"an unexpected write: {request.method} {request.path}")

    def after(self, request: ApiRequest, response: ApiResponse | None) -> None:
        """It was answered; None: the answer was lost."""
        body = _body(request)
        code = response.status if response else 0
        if not request.path.endswith("reviews"):
            at_s = self.server.core.clock.wall()
            self.writes.append(Write(at_s, request.method, request.path, body, code))
        if request.method != "DELETE" or not (0 < code < 300 or self._is_dying(request, body)):
            return
        uid, grace_s = body["preconditions"]["uid"], body.get("gracePeriodSeconds")
        if 0 < code < 300 and uid in self.deleted and self.deleted[uid] == grace_s:
            self._wrong(f"pod {request.path} (uid {uid}) was deleted twice")
        self.deleted[uid] = grace_s

    def _is_dying(self, request: ApiRequest, body: Object) -> bool:
        """Whether a deletion took effect, whatever was answered; a slower one is not ours."""
        namespace, _, name = request.path.split("/namespaces/")[-1].split("/")
        pod = self._get("Pod", namespace, name) or {"metadata": {}}
        meta = pod["metadata"]
        if meta.get("uid") != body["preconditions"]["uid"]:
            return True
        wanted_s = body.get("gracePeriodSeconds", meta.get("deletionGracePeriodSeconds"))
        return "deletionTimestamp" in meta and meta["deletionGracePeriodSeconds"] <= wanted_s

    def _deleting(self, namespace: str, name: str, body: Object) -> None:
        uid = body.get("preconditions", {}).get("uid")
        if not uid:
            self._wrong(f"pod {name}: deletion without UID")
            return
        pod = self._get("Pod", namespace, name)
        if pod is None or pod["metadata"]["uid"] != uid:
            return  # refused by the server
        owners: list[Object] = pod["metadata"].get("ownerReferences") or [{}]
        owner = owners[0]
        if owner.get("kind") == "ReplicaSet":
            made = self._get("ReplicaSet", namespace, owner["name"]) or {"metadata": {}}
            owner = (made["metadata"].get("ownerReferences") or [owner])[0]
        kind = owner.get("kind", "AscendJob")
        job = self._get(kind, namespace, owner.get("name", ""))
        if job is None or job["metadata"]["uid"] != owner.get("uid"):
            self._wrong(f"pod {name} is deleted, its owner is gone")
            return
        if job["metadata"].get("labels", {}).get("fault-scheduling") not in MANAGED:
            self._wrong(f"pod {name} is deleted, its job is not managed")
        group = self._get("PodGroup", namespace, f"{owner['name']}-{owner['uid']}") or {"metadata": {}}
        strategy = group["metadata"].get("annotations", {}).get("ProcessRecoverStrategy", "mindie-ha")
        if strategy != "mindie-ha":
            self._wrong(f"pod {name} is deleted, platform {strategy} owns its job")
        recovery = self.ledger_of(namespace, owner["name"], kind=kind).get("recovery") or {}
        if uid not in {target["uid"] for target in recovery.get("targets", ())}:
            self._wrong(f"pod {name} (uid {uid}) is deleted, but is no recorded target")
        elif recovery["phase"] not in ("stop", "gone"):
            self._wrong(f"pod {name} is deleted in phase {recovery['phase']}")

    def _tainting(self, name: str, body: Object) -> None:
        node = self._get("Node", "", name)
        if node is None or node["metadata"]["resourceVersion"] != body["metadata"].get("resourceVersion"):
            if node is not None and "resourceVersion" not in body["metadata"]:
                self._wrong(f"node {name} is patched without resourceVersion")
            return
        if set(body) != {"metadata", "spec"} or set(body["spec"]) != {"taints"}:
            self._wrong(f"node {name}: more than taints are patched: {body}")
        old, new = node.get("spec", {}).get("taints") or [], body["spec"]["taints"] or []
        if [one for one in old if one["key"] != TAINT] != [one for one in new if one["key"] != TAINT]:
            self._wrong(f"node {name}: taints of others were changed: {old} -> {new}")
        entries = self.remembered("mindx-dl", f"mindie-ha-node-{name}").get("isolations")
        if not entries:
            self._wrong(f"node {name}: our taint changes without a record")
        if any(one["key"] == TAINT and one["effect"] != "NoSchedule" for one in new):
            self._wrong(f"node {name}: {new}")

    def _labelling(self, name: str, body: Object) -> None:
        """Only as a person asked, and only the labels that make a job ours."""
        known = {"fault-scheduling", "pod-rescheduling"}
        if set(body) != {"metadata"} or set(body["metadata"]) != {"resourceVersion", "labels"}:
            self._wrong(f"job {name}: more than labels are patched: {body}")
        elif not set(body["metadata"]["labels"]) <= known:
            self._wrong(f"job {name}: {body}")

    def _labelling_pod(self, namespace: str, name: str, patch: Object) -> None:
        """Nothing but our label, and `active` on no second pod of a job."""
        meta = patch.pop("metadata")
        labels = meta.pop("labels")
        meta.pop("resourceVersion")
        if patch or meta or set(labels) != {MS_STATE}:
            self._wrong(f"more than the label of pod {name} is patched")
        if labels.get(MS_STATE) != "active":
            return
        job = name.rsplit("-", 2)[0]
        resource = by_kind("Pod")
        collection = self.server.core.store.collection((resource.group, resource.plural))
        for _, stored in collection.iterate(namespace):
            other = stored.obj["metadata"]
            same = other["name"] != name and other["name"].rsplit("-", 2)[0] == job
            if same and (other.get("labels") or {}).get(MS_STATE) == "active":
                self._wrong(f"{name} is to be the active one beside {other['name']}")

    def _adopting(self, namespace: str, name: str, body: Object) -> None:
        group = self._get("PodGroup", namespace, name) or {"metadata": {}}
        present = group["metadata"].get("annotations", {}).get("ProcessRecoverStrategy")
        wanted = body["metadata"].get("annotations")
        if set(body) != {"metadata"} or wanted != {"ProcessRecoverStrategy": "mindie-ha"}:
            self._wrong(f"PodGroup {name}: {body}")
        if present not in (None, "mindie-ha"):
            self._wrong(f"PodGroup {name} of platform {present} is adopted")

    def _known_map(self, namespace: str, name: str, request: ApiRequest) -> None:
        ours = name.startswith(
            ("mindie-ha-ledger-", "mindie-ha-service-", "mindie-ha-node-", "mindie-ha-mark-")
        )
        public = namespace == "mindx-dl" and name in ("mindie-ha-public-faults", "mindie-ha-pauses")
        if ours or public or (namespace, name) == ("volcano-system", "vcjob-fault-npu-cm"):
            return
        keys = set(_body(request).get("data", {}))
        if name.startswith("reset-config-"):
            self._asked(namespace, name.removeprefix("reset-config-"), _body(request)["data"])
        elif keys != {"global_ranktable.json"}:
            self._wrong(f"ConfigMap {namespace}/{name} is none of ours: {request.method} {keys}")

    # -- what the store says ------------------------------------------------------------------------

    def _changed(self, kind: Kind, change: Change) -> None:
        if kind != ("", "configmaps"):
            return
        namespace, name = change.key
        if name in self.tampered:
            return
        new = change.now.obj if change.type != "DELETED" else None
        old = change.before.obj if change.before is not None else None
        if name.startswith("mindie-ha-ledger-"):
            self._ledger_moved(_content(old), _content(new))
        elif name.startswith("mindie-ha-service-"):
            self._table_moved(_content(old), _content(new))
        elif new is not None and "global_ranktable.json" in new.get("data", {}):
            self._delivered_by_map(namespace, name, new["data"]["global_ranktable.json"])

    def _asked(self, namespace: str, job: str, data: Object) -> None:
        """The agents of a training job are asked only what is recorded, and nothing of others is lost."""
        present = self._get("ConfigMap", namespace, f"reset-config-{job}") or {"data": {}}
        old, new = json.loads(present["data"].get("reset.json", "{}")), json.loads(data["reset.json"])
        recovery = self.ledger_of(namespace, job).get("recovery") or {}
        if new["RetryTime"] not in (old.get("RetryTime", 0), recovery.get("rejoin")):
            self._wrong(f"reset-config-{job}: RetryTime {new['RetryTime']} is not recorded")
        if set(data) - {"reset.json", "checkCode", "restartType"} or set(old) - set(new):
            self._wrong(f"reset-config-{job}: {sorted(data)} is written")

    def _ledger_moved(self, old: Object, new: Object) -> None:
        if not new:
            return
        who, uid = new["workload"], new["workload_uid"]
        if new["epoch"] < self._epochs.get(uid, 0):
            self._wrong(f"{who}: its memory began anew")
        self._epochs[uid] = new["epoch"]
        if not old or old["workload_uid"] != uid:
            old = {"epoch": 0, "recovery": None, "software_retries_spent": 0}
        before, after = old["recovery"], new["recovery"]
        if new["epoch"] > old["epoch"] + 1:
            self._wrong(f"{who}: epoch jumps from {old['epoch']} to {new['epoch']}")
        if new["software_retries_spent"] < old["software_retries_spent"]:
            self._wrong(f"{who}: retries grew back")
        if after is None:
            return
        if before is None:
            if after["epoch"] != old["epoch"] + 1:
                self._wrong(f"{who}: recovery {after['epoch']} follows epoch {old['epoch']}")
            return
        if before["epoch"] != after["epoch"]:
            self._wrong(f"{who}: recovery {after['epoch']} opened while {before['epoch']} was open")
        self._recovery_moved(who, before, after)

    def _recovery_moved(self, who: str, before: Object, after: Object) -> None:
        if sum(after["attempts"].values()) < sum(before["attempts"].values()):
            self._wrong(f"{who}: an attempt was lost")
        known = {target["uid"] for target in before["targets"]}
        now = {target["uid"] for target in after["targets"]}
        if known - now:
            self._wrong(f"{who}: targets were forgotten")
        if now - known and after["phase"] not in BEFORE_DELETION:
            self._wrong(f"{who}: targets grew in phase {after['phase']}")

    def _table_moved(self, old: Object, new: Object) -> None:
        if not new or not new["generation"]:
            return
        service = (new["namespace"], new["job_id"])
        texts = self._tables.setdefault(service, [])
        generation, known = new["generation"], len(texts)
        if not known:
            texts.extend([""] * (generation - 1))  # published before the judge came
            known = generation - 1
        if generation == known:
            if texts[-1] != new["text"]:
                self._wrong(f"{service}: generation {generation} changed")
            return
        if generation != known + 1:
            self._wrong(f"{service}: generation {generation} follows {known}")
        texts.append(new["text"])
        if hashlib.sha256(new["text"].encode()).hexdigest() != new["digest"]:
            self._wrong(f"{service}: digest of generation {generation}")
        ids = list(new["ids"].values())
        shared = set(new["ids"]) & set(old.get("ids", {}))
        if len(set(ids)) != len(ids) or any(new["ids"][name] != old["ids"][name] for name in shared):
            self._wrong(f"{service}: ids {old.get('ids')} -> {new['ids']}")
        loaded = load(new["text"])
        if not loaded.accepted or loaded.zeroed or not loaded.instances:
            self._wrong(f"{service}: generation {generation} is refused: {loaded.reason or 'no servers'}")

    def _delivered_by_map(self, namespace: str, name: str, text: str) -> None:
        for (space, job_id), texts in self._tables.items():
            if space == namespace and text in texts:
                index = len(texts) - 1 - texts[::-1].index(text)
                if index < self._delivered.get((namespace, name), 0):
                    self._wrong(f"{namespace}/{name}: generation {index + 1} of {job_id} after a newer one")
                self._delivered[namespace, name] = index
                return
        if json.loads(text).get("status") != "initializing":
            self._wrong(f"{namespace}/{name}: a table was delivered that no ledger holds")

    # -- readings -----------------------------------------------------------------------------------

    def ledger_of(self, namespace: str, job: str, *, kind: str = "AscendJob") -> Object:
        """A workload's ledger as stored now; empty where there is none."""
        return self.remembered(namespace, f"mindie-ha-ledger-{kind.lower()}-{job}")

    def tables(self, job_id: str, *, namespace: str = "mindie") -> list[str]:
        """Every table of a service as recorded, oldest first; what was before the judge is empty."""
        return list(self._tables.get((namespace, job_id), ()))

    def remembered(self, namespace: str, name: str) -> Object:
        """Any ledger by the name of its ConfigMap; empty where there is none."""
        return _content(self._get("ConfigMap", namespace, name))

    def _get(self, kind: str, namespace: str, name: str) -> Object | None:
        stored = self.server.core.store.get(by_kind(kind), namespace, name)
        return stored.obj if stored is not None else None

    def _wrong(self, what: str) -> None:
        self.violations.append(f"{self.server.core.clock.monotonic():.2f}: {what}")


def _content(config_map: Object | None) -> Object:
    text = (config_map or {}).get("data", {}).get("ledger.json")
    content: Object = json.loads(text) if text else {}
    return content


def _body(request: ApiRequest) -> Object:
    body: Object = json.loads(request.body) if request.body else {}
    return body
