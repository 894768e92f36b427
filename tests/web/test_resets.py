"""`reset` by the API, by the command with a server, and with a kubeconfig alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mindie_ha.cluster import documents
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.policy import records
from tests.cli.test_isolations_without_a_server import command, simulated
from tests.cli.test_looking_commands import ask, call
from tests.engine.clusters import NAMESPACE, Cluster, cluster, listening, small_service
from tests.web.test_http_api import error_of, live

P0 = "mindie-server-p0"
KEY = f"{NAMESPACE}/{P0}"


async def park(c: Cluster) -> None:
    """Let the operator give up."""
    await c.fail_job(P0)
    await c.until(lambda: c.ledger(P0).get("parked"), "parked")


async def test_the_api_re_arms() -> None:
    async with live() as (c, session):
        place = f"/v1/workloads/{KEY}/reset"
        async with session.post(place) as answer:
            assert answer.status == 200
            assert await answer.json() == {"workload": KEY, "changed": False, "parked": None}
        await park(c)
        async with session.post(place, json={"reason": "seen", "person": "ann"}) as answer:
            found = await answer.json()
            assert (answer.status, found["changed"]) == (200, True)
            assert found["parked"]["reason"] == "OwnerGaveUp"
        await c.until(lambda: c.events("Rearmed"), "told")


@pytest.mark.parametrize(
    ("name", "body", "status", "what"),
    [
        pytest.param("nothing", {}, 404, "no workload mindie/nothing", id="unknown"),
        pytest.param(P0, {"person": "a b"}, 400, "no user name", id="person"),
        pytest.param(P0, {"reason": "a\nb"}, 400, "cannot be printed", id="reason"),
        pytest.param(P0, {"force": True}, 400, "unknown field", id="field"),
        pytest.param(P0, [1], 400, "expected an object", id="no-object"),
    ],
)
async def test_what_cannot_be_done_is_explained(name: str, body: object, status: int, what: str) -> None:
    place = f"/v1/workloads/{NAMESPACE}/{name}/reset"
    async with live() as (_, session), session.post(place, json=body) as answer:
        assert answer.status == status
        assert what in (await error_of(answer))["what"]


async def test_the_command_re_arms_by_the_server() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        code, out, err = await ask(c, "reset", KEY)
        assert (code, out, err) == (0, f"{KEY} is not parked; nothing was changed\n", "")
        await park(c)
        code, out, err = await ask(c, "reset", KEY, "--reason", "seen")
        assert (code, err) == (0, "")
        assert out.startswith(f"{KEY} is re-armed; it was parked (OwnerGaveUp): ")
        code, _, err = await ask(c, "reset", f"{NAMESPACE}/nothing")
        assert (code, err) == (1, f"mindie-ha: there is no workload {NAMESPACE}/nothing\n")


@pytest.mark.parametrize("name", ["p0", "/p0", "a/b/c", "mindie/"])
def test_a_name_without_its_namespace_is_refused(name: str) -> None:
    code, _, err = call("reset", name, "--server", "http://127.0.0.1:1")
    assert code == 2
    assert "is no NAMESPACE/NAME" in err


async def test_the_ledger_is_written_without_a_controller(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (c, path):
        for obj in small_service(("p0",)):
            await c.api.create(obj["kind"], obj)
        uid = await uid_of(c.api)
        ledger = WorkloadLedger(workload=f"AscendJob/{KEY}", workload_uid=uid)
        parked = records.parked(ledger, reason="LadderSpent", message="10 attempts", now_s=5.0)
        key = ObjectKey(NAMESPACE, f"mindie-ha-ledger-ascendjob-{P0}")
        owner = {"apiVersion": "mindxdl.gitee.com/v1", "kind": "AscendJob", "name": P0, "uid": uid}
        body = documents.manifest(
            key, parked, label="workload", annotations={}, owners=(owner,), limit=documents.MAX_BYTES
        )
        await c.api.create("ConfigMap", body)
        at = ("--kubeconfig", path)
        code, out, _ = await command("reset", KEY, "-o", "json", *at)
        assert (code, json.loads(out)["parked"]["reason"]) == (0, "LadderSpent")
        stored = await c.api.get("ConfigMap", key.name, NAMESPACE)
        assert stored is not None
        assert json.loads(stored["data"]["ledger.json"])["parked"] is None
        code, out, _ = await command("reset", KEY, *at)
        assert (code, out) == (0, f"{KEY} is not parked; nothing was changed\n")


async def uid_of(api: object) -> str:
    """The UID of the AscendJob, once it stands."""
    for _ in range(100):
        found = await api.get("AscendJob", P0, NAMESPACE)  # type: ignore[attr-defined]
        if found is not None:
            return str(found["metadata"]["uid"])
        await asyncio.sleep(0.02)
    raise AssertionError("no AscendJob")
