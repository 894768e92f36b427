"""The independent observer: follows the API server's own watches, its audit and the receivers of tables.

It shares no code and no state with the product. Objects that it cannot read are left out; the judges then
miss them, and that fails a scenario, which is the right way round.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from mindie_ha.demo import observations as seen
from mindie_ha.kit.clock import Clock
from mindie_ha.sim.audits import AuditEntry
from mindie_ha.sim.client import ApiClient, ApiError, Object
from mindie_ha.sim.ms.programs import MsPrograms
from mindie_ha.sim.ms.receivers import PushReceiver

TAINT = "mindie-ha.io/isolated"
LEDGER_LABEL = "mindie-ha.io/ledger"
TABLE_KEY = "global_ranktable.json"
RINGS = "rings-config-"
DEVICES = "huawei.com/AscendReal"
POLL_S = 0.2

Event = (
    seen.PodLife
    | seen.LedgerSeen
    | seen.TableSeen
    | seen.Delivery
    | seen.NodeSeen
    | seen.IsolationSeen
    | seen.InstanceTableSeen
    | seen.JobSeen
    | seen.EventSeen
)
Listener = Callable[[str, Event], None]  # what happened to it: "created", "running", "ready", "deleted", …


class Journal:
    """Fills `Observations`; listeners are told of every step as it is seen."""

    def __init__(
        self,
        *,
        api: ApiClient,
        clock: Clock,
        audit: Iterable[AuditEntry],
        programs: MsPrograms,
        push: PushReceiver,
    ) -> None:
        self._api = api
        self._clock = clock
        self._audit = audit
        self._programs = programs
        self._push = push
        self._taken: dict[int, int] = {}  # id of a receiver -> deliveries taken from it
        self._config_maps: dict[str, str] = {}  # ConfigMap with a table -> its text
        self._given: set[str] = set()  # texts that the manifests brought
        self.observations = seen.Observations(origin_s=clock.wall() - clock.monotonic())
        self.listeners: list[Listener] = []

    @property
    def now_s(self) -> float:
        """Seconds of the scenario's clock."""
        return self._clock.monotonic()

    async def run(self) -> None:
        """Observe until cancelled."""
        kinds: dict[str, Callable[[str, Object], None]] = {
            "Pod": self._pod,
            "ConfigMap": self._config_map,
            "Node": self._node,
            **dict.fromkeys(seen.JOB_KINDS, self._job),
            "Event": self._event,
        }
        async with asyncio.TaskGroup() as group:
            for kind, take in kinds.items():
                group.create_task(self._follow(kind, take), name=f"journal-{kind}")
            group.create_task(self._follow_receivers(), name="journal-receivers")

    def expect_objects(self, objects: Iterable[Object]) -> None:
        """These will be applied by the stage: a table in them was delivered by nobody."""
        self._given |= {(each.get("data") or {}).get(TABLE_KEY, "") for each in objects}

    def read_audit(self) -> None:
        """Take the audit over into the observations; call it before judging."""
        self.observations.writes = [
            seen.Write(
                at_s=self.observations.scenario_s(entry.time),
                verb=entry.verb,
                resource=entry.resource,
                name=f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name,
                uid=entry.uid,
                agent=entry.user_agent,
                code=entry.code,
            )
            for entry in self._audit
        ]

    def note_subscribers(self) -> None:
        """Remember who must have the newest table now: leading Controllers, ConfigMaps, the push target."""
        leading = [each for each in self._programs.controllers if each.running and each.leads and each.client]
        peers = {f"{each.sandbox.namespace}/{each.sandbox.name}" for each in leading}
        self.observations.leaders = self._programs.leaders()
        self.observations.subscribers = {*peers, *self._config_maps, self._push.url}

    async def _follow(self, kind: str, take: Callable[[str, Object], None]) -> None:
        found, version = await self._api.list(kind)
        for obj in found:
            take("ADDED", obj)
        while True:
            async for change, obj in self._api.watch(kind, version):
                if change == "ERROR":
                    raise ApiError(obj.get("code", 500), obj.get("reason", ""), obj.get("message", ""))
                version = obj["metadata"]["resourceVersion"]
                if change != "BOOKMARK":
                    take(change, obj)

    # -- pods and their owners -----------------------------------------------------------------------

    def _pod(self, change: str, obj: Object) -> None:
        meta = obj["metadata"]
        workload = _owner(meta)
        if not workload:
            return
        pod = self.observations.pods.get(meta["uid"])
        if pod is None:
            pod = seen.PodLife(
                workload, meta["name"], meta["namespace"], meta["uid"], self.now_s, _version(obj)
            )
            self.observations.pods[pod.uid] = pod
            self._tell("created", pod)
        was_ready, was_phase = pod.ready, pod.phase
        self._refresh(pod, obj)
        if pod.deleted_s is None and (change == "DELETED" or meta.get("deletionTimestamp")):
            pod.deleted_s, pod.deleted_version = self.now_s, _version(obj)
            self._tell("deleted", pod)
        if change == "DELETED":
            pod.gone_s = self.now_s
            self._tell("gone", pod)
        elif pod.deleted_s is None:
            if pod.phase != was_phase:
                self._tell(pod.phase.lower(), pod)
            if pod.ready != was_ready:
                self._tell("ready" if pod.ready else "unready", pod)

    def _refresh(self, pod: seen.PodLife, obj: Object) -> None:
        status = obj.get("status") or {}
        pod.node = (obj.get("spec") or {}).get("nodeName") or pod.node
        listed = (obj["metadata"].get("annotations") or {}).get(DEVICES, "")
        pod.devices = tuple(card for card in listed.split(",") if card) or pod.devices
        pod.ip = status.get("podIP") or pod.ip
        pod.phase = status.get("phase") or pod.phase
        conditions = status.get("conditions") or []
        pod.ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)

    def _job(self, change: str, obj: Object) -> None:
        meta, key = obj["metadata"], _key(obj["metadata"])
        if change == "DELETED":
            self.observations.jobs.pop(key, None)
            return
        labels = meta.get("labels") or {}
        spec = obj.get("spec") or {}
        replicas = spec.get("tasks") or (spec.get("replicaSpecs") or {}).values() or [spec]
        job = seen.JobSeen(
            key=key,
            replicas=sum(int(each.get("replicas", 1)) for each in replicas),
            app=labels.get("app", ""),
            job_id=labels.get("jobID", ""),
            failed=_failed(obj.get("status") or {}),
        )
        known = self.observations.jobs.get(key)
        self.observations.jobs[key] = job
        if job.failed and (known is None or not known.failed):
            self._tell("failed", job)

    # -- nodes ---------------------------------------------------------------------------------------

    def _node(self, change: str, obj: Object) -> None:
        keys = [each["key"] for each in (obj.get("spec") or {}).get("taints") or []]
        name = obj["metadata"]["name"]
        state = seen.NodeSeen(
            at_s=self.now_s,
            version=_version(obj),
            node=name,
            tainted=TAINT in keys and change != "DELETED",
            foreign=frozenset(key for key in keys if key != TAINT),
        )
        before = next((each for each in reversed(self.observations.nodes) if each.node == name), None)
        if before is not None and (before.tainted, before.foreign) == (state.tainted, state.foreign):
            return
        self.observations.nodes.append(state)
        if state.tainted != (before.tainted if before is not None else False):
            self._tell("tainted" if state.tainted else "released", state)

    def _event(self, change: str, obj: Object) -> None:
        source = obj.get("source") or {}
        if change == "DELETED" or source.get("component") != seen.OUR_AGENT:
            return
        about = obj.get("involvedObject") or {}
        event = seen.EventSeen(
            reason=obj.get("reason", ""),
            about=about.get("kind", ""),
            name=about.get("name", ""),
            message=obj.get("message", ""),
            count=int(obj.get("count") or 1),
            warning=obj.get("type") == "Warning",
        )
        if obj["metadata"]["uid"] not in self.observations.events:
            self._tell("told", event)
        self.observations.events[obj["metadata"]["uid"]] = event

    # -- ConfigMaps: ledgers, tables, instance tables --------------------------------------------------

    def _config_map(self, change: str, obj: Object) -> None:
        meta = obj["metadata"]
        data = (obj.get("data") or {}) if change != "DELETED" else {}
        kind = (meta.get("labels") or {}).get(LEDGER_LABEL, "")
        if kind:
            self._ledger(kind, obj, _json(data.get("ledger.json", "")))
        elif meta["name"].startswith(RINGS):
            self._rings(meta, data)
        elif TABLE_KEY in data or _key(meta) in self._config_maps:
            self._boot_table(meta, data.get(TABLE_KEY, ""))

    def _ledger(self, kind: str, obj: Object, body: dict[str, Any]) -> None:
        at_s, version = self.now_s, _version(obj)
        if kind == "workload" and body:
            ledger = seen.LedgerSeen(at_s, version, body["workload"].split("/", 1)[1], body)
            self.observations.ledgers.append(ledger)
            self._tell("written", ledger)
        elif kind == "node":
            annotations = obj["metadata"].get("annotations") or {}
            node = body.get("node") or annotations.get("mindie-ha.io/node", "")
            entry = seen.IsolationSeen(at_s, version, node, tuple(body.get("isolations", ())))
            self.observations.isolations.append(entry)
            self._tell("written", entry)
        elif kind == "service" and body.get("generation"):
            self._table(body, at_s, version)

    def _table(self, body: dict[str, Any], at_s: float, version: int) -> None:
        service = f"{body['namespace']}/{body['job_id']}"
        known = next((each for each in reversed(self.observations.tables) if each.service == service), None)
        if known is not None and (known.generation, known.digest) == (body["generation"], body["digest"]):
            return
        table = seen.TableSeen(at_s, version, service, body["generation"], body["digest"], body["text"])
        self.observations.tables.append(table)
        self._tell("published", table)

    def _rings(self, meta: Object, data: Object) -> None:
        table = _json(data.get("hccl.json", ""))
        if table.get("status") != "completed":
            return
        servers = [each for each in table.get("server_list") or [] if isinstance(each, dict)]
        names = {each.get(key) for each in servers for key in ("server_id", "container_ip")}
        workload = f"{meta['namespace']}/{meta['name'].removeprefix(RINGS)}"
        entry = seen.InstanceTableSeen(self.now_s, workload, frozenset(filter(None, names)))
        known = [each for each in self.observations.instance_tables if each.workload == workload]
        if not known or known[-1].members != entry.members:
            self.observations.instance_tables.append(entry)
            self._tell("completed", entry)

    def _boot_table(self, meta: Object, text: str) -> None:
        key = _key(meta)
        if text and text not in self._given and self._config_maps.get(key) != text:
            self._config_maps[key] = text
            self._deliver(self.now_s, "configmap", key, text)

    # -- receivers -----------------------------------------------------------------------------------

    async def _follow_receivers(self) -> None:
        while True:
            for controller in self._programs.controllers:
                peer = f"{controller.sandbox.namespace}/{controller.sandbox.name}"
                for table in self._new(controller, controller.received):
                    self._deliver(table.at_s, "grpc", peer, table.text)
            for push in self._new(self._push, self._push.received):
                self._deliver(push.at_s, "http", self._push.url, push.body.decode("utf-8", "replace"))
            await self._clock.sleep(POLL_S)

    def _new(self, receiver: object, records: list[Any]) -> list[Any]:
        taken = self._taken.get(id(receiver), 0)
        self._taken[id(receiver)] = len(records)
        return records[taken:]

    def _deliver(self, at_s: float, channel: str, peer: str, text: str) -> None:
        digest = hashlib.sha256(text.encode()).hexdigest()
        delivery = seen.Delivery(at_s, channel, peer, digest, text)
        self.observations.deliveries.append(delivery)
        self._tell("delivered", delivery)

    def _tell(self, what: str, event: Event) -> None:
        for listener in self.listeners:
            listener(what, event)


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _key(meta: Object) -> str:
    return f"{meta['namespace']}/{meta['name']}"


def _owner(meta: Object) -> str:
    for owner in meta.get("ownerReferences") or []:
        if owner.get("controller") and owner.get("kind") in seen.JOB_KINDS:
            return f"{meta['namespace']}/{owner['name']}"
        if owner.get("controller") and owner.get("kind") == "ReplicaSet":
            return f"{meta['namespace']}/{owner['name'].rpartition('-')[0]}"
    return ""


def _failed(status: Object) -> str:
    """Why an owner gave its job up; "" where it did not."""
    state = status.get("state") or {}
    if state.get("phase") == "Failed":
        return state.get("message") or "Failed"
    conditions = status.get("conditions") or []
    failed = [each for each in conditions if each.get("type") == "Failed" and each.get("status") == "True"]
    return (failed[0].get("message") or "Failed") if failed else ""


def _json(text: str) -> dict[str, Any]:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


__all__ = ["Event", "Journal", "Listener"]
