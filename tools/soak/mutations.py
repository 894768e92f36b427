"""Broken controllers, to prove that the judge would see them. Nothing here is in the product.

A mutation stands between a controller and its cluster, or hands it a broken part; each takes one of the
product's safeguards away. The simulation must report a broken promise with every one of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mindie_ha.cluster import documents
from mindie_ha.cluster.writer import Fence
from mindie_ha.engine.reconciling import Planner
from mindie_ha.model.decisions import Plan
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.policy.planner import plan
from mindie_ha.sim.requests import ApiRequest, ApiResponse
from mindie_ha.sim.server import ApiServer

Object = dict[str, Any]
LEDGER = "mindie-ha-ledger-"
PATIENCE_S = 10.0


class Mutation:
    """No mutation: everything passes as it is."""

    planner: Planner = staticmethod(plan)
    fence: Callable[[Fence], Fence] = staticmethod(lambda fence: fence)

    def another_life(self) -> Mutation:
        """The same for a controller process that starts now."""
        return type(self)()

    def request(self, request: ApiRequest) -> ApiRequest:
        """What leaves instead of a request."""
        return request

    def swallow(self, request: ApiRequest, server: ApiServer) -> ApiResponse | None:  # noqa: ARG002
        """The answer to a write that never arrives; None: it arrives."""
        return None

    def response(self, request: ApiRequest, response: ApiResponse) -> ApiResponse:  # noqa: ARG002
        """What is heard instead of an answer."""
        return response


class OpenFence:
    """Lets everything through, whoever leads."""

    def guard(self) -> float:
        """Always open."""
        return math.inf


class NoFence(Mutation):
    """Writes on though another one may lead by now."""

    fence = staticmethod(lambda _fence: OpenFence())


class NoWriteAhead(Mutation):
    """Acts without having written it down: the ledger is never saved, though the controller believes so."""

    def swallow(self, request: ApiRequest, server: ApiServer) -> ApiResponse | None:
        """Ledgers of workloads get a good answer and go nowhere."""
        if request.method not in ("POST", "PUT") or "/configmaps" not in request.path:
            return None
        body: Object = json.loads(request.body)
        if not body["metadata"]["name"].startswith(LEDGER):
            return None
        uid = f"swallowed-{body['metadata']['name']}"
        meta = {**body["metadata"], "uid": uid, "resourceVersion": str(server.core.store.version)}
        return ApiResponse(
            201 if request.method == "POST" else 200, json.dumps({**body, "metadata": meta}).encode()
        )


class StaleDelete(Mutation):
    """Deletes whatever has the name of a pod that it once saw: no UID goes with the request."""

    def request(self, request: ApiRequest) -> ApiRequest:
        """Deletions lose their precondition."""
        if request.method != "DELETE" or "/pods/" not in request.path or not request.body:
            return request
        body = {key: value for key, value in json.loads(request.body).items() if key != "preconditions"}
        return replace(request, body=json.dumps(body).encode())


class ForgetfulBudget(Mutation):
    """Starts with empty hands: what was spent before a restart is not remembered."""

    def response(self, request: ApiRequest, response: ApiResponse) -> ApiResponse:
        """Ledgers in lists have nothing spent."""
        if request.method != "GET" or not request.path.endswith("/configmaps") or not response.body:
            return response
        body: Object = json.loads(response.body)
        for item in body.get("items", ()):
            if item["metadata"]["name"].startswith(LEDGER):
                item["data"] = self._unspent(item["data"])
        return replace(response, body=json.dumps(body).encode())

    @staticmethod
    def _unspent(data: Mapping[str, str]) -> dict[str, str]:
        ledger = WorkloadLedger.model_validate_json(data[documents.LEDGER_KEY])
        open_now = ledger.recovery
        changed = ledger.model_copy(
            update={
                "software_retries_spent": 0,
                "attempts": (),
                "recovery": open_now and open_now.model_copy(update={"attempts": {}}),
            }
        )
        return documents.encode(changed, limit=documents.MAX_BYTES)


class UncheckedTable(Mutation):
    """Takes every completed instance table for that of the present pods, whoever's it is."""

    @staticmethod
    def planner(view: ScopeView, settings: Settings, now_s: float) -> Plan:
        """Plans as if each `hccl.json` named the pods that are there now."""
        return plan(replace(view, workloads=tuple(map(_believed, view.workloads))), settings, now_s)


def _believed(item: WorkloadView) -> WorkloadView:
    """The workload, its instance table under the names of its present pods."""
    try:
        table: Object = json.loads((item.rings and item.rings.text) or "{}")
    except ValueError:
        return item
    servers = table.get("server_list") or ()
    complete = table.get("status") == "completed" and len(servers) == len(item.pods)
    if item.rings is None or not complete or not all(pod.ip and pod.alive for pod in item.pods):
        return item
    for server, pod in zip(servers, item.pods, strict=True):
        server |= {"container_ip": pod.ip, "host_ip": pod.host_ip, "server_id": pod.uid}
    return replace(item, rings=replace(item.rings, text=json.dumps(table)))


class ShortPause(Mutation):
    """Soon forgets that a person paused something."""

    @staticmethod
    def planner(view: ScopeView, settings: Settings, now_s: float) -> Plan:
        """Plans without the pauses that have stood for a while."""
        kept = tuple(one for one in view.pauses.ledger.pauses if now_s - one.since_s < PATIENCE_S)
        ledger = view.pauses.ledger.model_copy(update={"pauses": kept})
        return plan(replace(view, pauses=replace(view.pauses, ledger=ledger)), settings, now_s)


MUTATIONS: dict[str, type[Mutation]] = {
    "no-fence": NoFence,
    "no-write-ahead": NoWriteAhead,
    "stale-delete": StaleDelete,
    "forgetful-budget": ForgetfulBudget,
    "unchecked-table": UncheckedTable,
    "short-pause": ShortPause,
}

__all__ = ["MUTATIONS", "Mutation"]
