"""`recover` by the API, by the command with a server, and with a kubeconfig alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_isolations_without_a_server import command, simulated
from tests.cli.test_looking_commands import ask, call
from tests.engine.clusters import NAMESPACE, cluster, listening, small_service
from tests.web.test_http_api import error_of, live
from tests.web.test_resets import uid_of

P0 = "mindie-server-p0"
KEY = f"{NAMESPACE}/{P0}"
PLACE = f"/v1/workloads/{KEY}/recover"


async def test_the_api_records_a_wish_and_the_controller_does_it() -> None:
    async with live() as (c, session):
        before = c.uids(P0)
        async with session.post(PLACE, json={"reason": "try", "person": "ann"}) as answer:
            found = await answer.json()
            assert (answer.status, found["workload"], found["rung"]) == (202, KEY, "job")
            assert (sorted(found["pods"]), found["epoch"]) == (sorted(before), 1)
        assert c.ledger(P0)["request"] or c.ledger(P0)["recovery"], "recorded before it is answered"
        async with session.post(PLACE, json={"reason": "again"}) as answer:
            assert answer.status == 409
        await c.recovered(P0)
        assert not set(before.values()) & set(c.uids(P0).values())


@pytest.mark.parametrize(
    ("name", "body", "status", "what"),
    [
        pytest.param("nothing", {"reason": "x"}, 404, "no workload mindie/nothing", id="unknown"),
        pytest.param(P0, {}, 400, "a reason is needed", id="reason"),
        pytest.param(P0, {"reason": "x", "person": "a b"}, 400, "no user name", id="person"),
        pytest.param(P0, {"reason": "x", "rung": "all"}, 400, "no rung", id="rung"),
        pytest.param(P0, {"reason": "x", "pods": "p"}, 400, "list of names", id="pods"),
        pytest.param(P0, {"reason": "x", "pods": [1]}, 400, "list of names", id="pods-numbers"),
        pytest.param(P0, {"reason": "x", "pods": ["p"]}, 400, "restarts as a whole", id="server-pods"),
        pytest.param(P0, {"reason": "x", "force": True}, 400, "unknown field", id="field"),
    ],
)
async def test_what_cannot_be_done_is_explained(name: str, body: object, status: int, what: str) -> None:
    place = f"/v1/workloads/{NAMESPACE}/{name}/recover"
    async with live() as (_, session), session.post(place, json=body) as answer:
        assert answer.status == status
        assert what in (await error_of(answer))["what"]


async def test_the_command_asks_by_the_server() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        code, out, err = await ask(c, "recover", KEY, "--reason", "try")
        assert (code, err) == (0, "")
        assert out.startswith(f"{KEY}: recovery 1 is asked for, job rung: {P0}-master-0")
        code, _, err = await ask(c, "recover", KEY, "--reason", "again")
        assert code == 1
        assert err.count("\n") == 1
        await c.recovered(P0)
        code, out, _ = await ask(c, "history", KEY, "-o", "json")
        (past,) = json.loads(out)["recoveries"]
        assert (past["kind"], past["cause"]) == ("request", "Requested")
    assert call("recover", KEY, "--server", "http://127.0.0.1:1")[0] == 2, "a reason is needed"


async def test_the_ledger_is_written_without_a_controller(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (c, path):
        for obj in small_service(("p0",)):
            await c.api.create(obj["kind"], obj)
        await uid_of(c.api)
        code, out, err = 1, "", "no pod"
        for _ in range(100):  # until the operator has made the pods
            code, out, err = await command(
                "recover", KEY, "--reason", "x", "-o", "json", "--kubeconfig", path
            )
            if "no pod" not in err:
                break
        assert (code, err) == (0, "")
        assert json.loads(out)["rung"] == "job"
        stored = await c.api.get("ConfigMap", f"mindie-ha-ledger-ascendjob-{P0}", NAMESPACE)
        assert stored is not None
        assert json.loads(stored["data"]["ledger.json"])["request"]["text"] == "x"
