"""`why`, `plan` and `history`: by the API, by the commands with a server, and with a kubeconfig alone."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import pytest

from mindie_ha.cluster import documents
from mindie_ha.model.faults import Cause
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.recoveries import Intent, IntentKind, Outcome
from mindie_ha.policy import records
from tests.cli.test_isolations_without_a_server import command, simulated
from tests.cli.test_looking_commands import ask
from tests.engine.clusters import CHIP, NAMESPACE, cluster, listening, small_service
from tests.web.test_http_api import error_of, live
from tests.web.test_resets import uid_of

P0, D0 = "mindie-server-p0", "mindie-server-d0"
KEY = f"{NAMESPACE}/{P0}"


async def got(session: aiohttp.ClientSession, path: str, **query: str) -> dict[str, object]:
    async with session.get(path, params=query) as answer:
        assert answer.status == 200
        found: dict[str, object] = await answer.json()
        return found


async def test_the_api_explains_a_recovery_before_while_and_after() -> None:
    async with live() as (c, session):
        why = await got(session, f"/v1/workloads/{KEY}/why")
        assert (why["workload"], why["waits_for"], why["steps"], why["closed"]) == (KEY, None, [], [])
        assert (await got(session, "/v1/history"))["recoveries"] == []
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.ledger(P0).get("recovery"), "open")
        why = await got(session, f"/v1/workloads/{KEY}/why", limit="500")
        assert set(why["waits_for"]) == {"what", "ends", "until_s", "then"}  # type: ignore[call-overload]
        await c.recovered(P0)
        why = await got(session, f"/v1/workloads/{KEY}/why", limit="500")
        decisions = why["decisions"]
        assert isinstance(decisions, list)
        times = [one["at_s"] for one in decisions]
        assert times == sorted(times)
        assert {one["subject"] for one in decisions} == {KEY}
        assert {"healthy", "open", "continue", "close"} <= {one["rule"] for one in decisions}
        assert any("delete pod" in action for one in decisions for action in one["actions"])
        assert why["steps"]
        (past,) = (await got(session, "/v1/history", workload=KEY))["recoveries"]  # type: ignore[misc]
        assert [past] == why["closed"]
        assert (past["cause"], past["rungs"], past["outcome"]) == ("ChipUnhealthy", ["job"], "recovered")
        assert past["took_s"] == pytest.approx(past["closed_at_s"] - past["opened_at_s"], abs=0.01)
        assert len(past["deleted"]) == len(past["created"]) > 0


@pytest.mark.parametrize(
    ("path", "status", "what"),
    [
        pytest.param(f"/v1/workloads/{NAMESPACE}/nothing/why", 404, "no workload mindie/nothing", id="why"),
        pytest.param(f"/v1/workloads/{KEY}/why?limit=-1", 400, "not a whole number", id="limit"),
        pytest.param("/v1/plan?workload=p0", 400, "no NAMESPACE/NAME", id="plan-name"),
        pytest.param("/v1/plan?workload=mindie/nothing", 404, "no workload", id="plan-unknown"),
        pytest.param("/v1/history?workload=a/b/c", 400, "no NAMESPACE/NAME", id="history-name"),
        pytest.param("/v1/history?workload=mindie/nothing", 404, "no workload", id="history-unknown"),
    ],
)
async def test_what_cannot_be_explained_is_one_clear_error(path: str, status: int, what: str) -> None:
    async with live() as (_, session), session.get(path) as answer:
        assert answer.status == status
        assert what in (await error_of(answer))["what"]


async def test_the_commands_ask_a_running_controller() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        code, out, err = await ask(c, "plan")
        assert (code, err) == (0, "")
        assert out.startswith("nothing to do for ")
        code, out, _ = await ask(c, "history")
        assert (code, out) == (0, "no recovery is over yet\n")
        await c.fail_job(P0)
        await c.until(lambda: c.ledger(P0).get("parked"), "parked")
        code, out, err = await ask(c, "why", KEY)
        assert (code, err) == (0, "")
        assert f"{KEY} (server): parked" in out
        assert "waits for: a person: OwnerGaveUp: " in out
        assert f"ends with: delete AscendJob {KEY} and apply it anew" in out
        assert "mindie-ha reset" not in out
        assert "    tells: OwnerGaveUp: " in out
        code, out, _ = await ask(c, "why", KEY, "-o", "json", "--limit", "1")
        assert len(json.loads(out)["decisions"]) == 1
        code, out, _ = await ask(c, "plan", KEY, "-o", "yaml")
        assert (code, "rule: parked" in out) == (0, True)
        code, _, err = await ask(c, "why", f"{NAMESPACE}/nothing")
        assert (code, err) == (1, f"mindie-ha: there is no workload {NAMESPACE}/nothing\n")


async def test_a_plan_is_made_and_not_carried_out() -> None:
    async with live() as (c, session):
        writes = len(c.judge.writes)
        for _ in range(3):
            plan = await got(session, "/v1/plan")
            subjects = {one["subject"] for one in plan["workloads"]}  # type: ignore[attr-defined]
            assert {KEY, f"{NAMESPACE}/{D0}"} <= subjects
            assert not any(one["records"] for one in plan["workloads"])  # type: ignore[attr-defined]
        assert len(c.judge.writes) == writes


async def test_ledgers_and_planner_speak_without_a_controller(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (c, path):
        for obj in small_service(("p0",)):
            await c.api.create(obj["kind"], obj)
        uid = await uid_of(c.api)
        await c.api.create("ConfigMap", past_of(uid))
        at = ("--kubeconfig", path)
        code, out, err = await command("history", *at)
        assert (code, err) == (0, "")
        assert all(word in out for word in (KEY, "#1", "ChipUnhealthy", "recovered", "30.0 s", "well again"))
        code, out, _ = await command("why", KEY, *at)
        assert (code, "only a running controller (--server) has them" in out) == (0, True)
        assert "before: #1 ChipUnhealthy, recovered after 30 s" in out
        code, out, _ = await command("plan", KEY, "-o", "json", *at)
        (planned,) = json.loads(out)["workloads"]
        assert (code, planned["subject"]) == (0, KEY)


def past_of(uid: str) -> dict[str, object]:
    """The ConfigMap of a ledger with one recovery that is over."""
    intent = Intent(kind=IntentKind.FAULT, cause=Cause.CHIP_UNHEALTHY, at_s=5.0, summary="a card")
    recovery = records.opened(epoch=1, intent=intent, rung="job", now_s=10.0)
    ledger = WorkloadLedger(workload=f"AscendJob/{KEY}", workload_uid=uid, epoch=1)
    ledger = records.closed(
        ledger, recovery, outcome=Outcome.RECOVERED, summary="2 pods are well again", members=(), now_s=40.0
    )
    owner = {"apiVersion": "mindxdl.gitee.com/v1", "kind": "AscendJob", "name": P0, "uid": uid}
    return documents.manifest(
        ObjectKey(NAMESPACE, f"mindie-ha-ledger-ascendjob-{P0}"),
        ledger,
        label="workload",
        annotations={},
        owners=(owner,),
        limit=documents.MAX_BYTES,
    )
