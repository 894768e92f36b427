"""Two replicas: the leader is killed in each phase, or frozen, and the other finishes."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mindie_ha.cluster.permissions import WRITES
from mindie_ha.sim.client import ApiClient, ApiError
from tests.real import machines, seen
from tests.real.accounts import lacking
from tests.real.controllers import Controller, running, until
from tests.real.rounds import CHIP, P0, PODS_OF_P0, one_round
from tools.control_plane.planes import ControlPlane

PHASES = ("isolate", "stop", "gone", "recreate", "place", "table", "settle")
LEDGER = f"mindie-ha-ledger-ascendjob-{P0}"
DELETION = next(each for each in WRITES if each.verb == "delete")
Property = Callable[[str, object], None]
LEASE_S = 6.0
LEASE = {
    "MINDIE_HA_LEASE__DURATION_S": f"{LEASE_S:.0f}",
    "MINDIE_HA_LEASE__RENEW_S": "1",
    "MINDIE_HA_LEASE__RETRY_S": "2.5",
}


@asynccontextmanager
async def two(field: ControlPlane, account: Path) -> AsyncIterator[tuple[Controller, Controller]]:
    """The two replicas of the manifests: who leads, who stands by."""
    pods = machines.our_pods(field)
    assert len(pods) == 2
    async with AsyncExitStack() as stack:
        both = [
            await stack.enter_async_context(running(kubeconfig=account, pod=pod, settings=LEASE))
            for pod in pods
        ]

        async def leads() -> tuple[Controller, Controller] | None:
            roles = {(await one.health())["role"]: one for one in both}
            ready = all([await one.get("/readyz") for one in both])
            return (roles["leader"], roles["standby"]) if ready and len(roles) == 2 else None

        yield await until(leads, what="one leads and one stands by")


async def reached(api: ApiClient, wanted: str) -> str:
    """Follow the ledger until the recovery has reached this phase, or one after it."""
    while True:
        ledgers, version = await api.list("ConfigMap", seen.NAMESPACE, labels="mindie-ha.io/ledger")
        states = [one for one in ledgers if one["metadata"]["name"] == LEDGER]
        try:
            if found := next((at for at in map(phase_in, states) if after(at, wanted)), ""):
                return found
            async for _, body in api.watch("ConfigMap", version, namespace=seen.NAMESPACE):
                if body["metadata"].get("name") == LEDGER and after(phase_in(body), wanted):
                    return phase_in(body)
        except (ApiError, OSError, aiohttp.ClientError):
            await asyncio.sleep(0.2)


def phase_in(body: dict[str, Any]) -> str:
    """The phase that a ledger tells; empty without an open recovery."""
    for text in (body.get("data") or {}).values():
        found = json.loads(text) if text.startswith("{") else {}
        if isinstance(found.get("recovery"), dict):
            return str(found["recovery"]["phase"])
    return ""


def after(phase: str, wanted: str) -> bool:
    return phase in PHASES and PHASES.index(phase) >= PHASES.index(wanted)


@pytest.mark.parametrize("phase", PHASES)
async def test_killed_in_a_phase_the_other_finishes(
    phase: str, field: ControlPlane, account: Path, api: ApiClient, record_property: Property
) -> None:
    async with two(field, account) as (leader, other), one_round(field, api, leader) as play:
        follow = asyncio.create_task(reached(api, phase))
        await asyncio.sleep(0.5)  # the watch is open
        play.strike(f"{P0}-master-0", CHIP)
        at = await asyncio.wait_for(follow, machines.WITHIN_S)
        followed = len(other.lines)
        await leader.kill()
        loop = asyncio.get_running_loop()
        killed_s = loop.time()
        await other.said("started", after=followed)
        took_s = loop.time() - killed_s
        after_ = await play.recovered(P0, by=other)
        assert after_.changed_since(play.before) == PODS_OF_P0
        assert_deleted_once(play.before, leader, other)
        record_property("measured", f"killed in {at} (asked for {phase}): the other led after {took_s:.1f} s")


def assert_deleted_once(before: seen.Seen, *controllers: Controller) -> None:
    """No pod was deleted twice, and none that replaced another."""
    deleted = Counter(
        line["uid"]
        for controller in controllers
        for line in controller.lines
        if line.get("verb") == "delete" and line.get("result") == "done"
    )
    assert all(count == 1 for count in deleted.values()), deleted
    assert set(deleted) <= set(before.uids.values()), "a replacement was deleted"


async def test_frozen_in_stop_it_thaws_as_a_standby_and_writes_nothing(
    field: ControlPlane, api: ApiClient, record_property: Property
) -> None:
    may_not_delete = await asyncio.to_thread(lacking, field, DELETION)  # so the recovery stays in `stop`
    async with (
        two(field, may_not_delete.kubeconfig) as (leader, other),
        one_round(field, api, leader) as play,
    ):
        play.strike(f"{P0}-master-0", CHIP)
        await leader.said("write failed", verb="delete", resource="pods")
        assert await asyncio.wait_for(reached(api, "stop"), machines.WITHIN_S) == "stop"
        frozen_s, followed = asyncio.get_running_loop().time(), len(other.lines)
        leader.signal(signal.SIGSTOP)
        await other.said("started", after=followed)
        may_not_delete.grant()
        await asyncio.sleep(max(0.0, frozen_s + 2 * LEASE_S - asyncio.get_running_loop().time()))
        silent = len(leader.lines)
        leader.signal(signal.SIGCONT)
        pause = {"scope": "cluster", "reason": "test"}
        assert await leader.post("/v1/pauses", pause, token=machines.admin_token(field)) == 503
        await leader.said("standing by", after=silent)
        assert any("leads no longer" in str(line.get("event")) for line in leader.lines[silent:])
        after_ = await play.recovered(P0, by=other)
        assert after_.changed_since(play.before) == PODS_OF_P0
        assert_deleted_once(play.before, leader, other)
        assert (await leader.health())["role"] == "standby"
        thawed = [line for line in leader.lines[silent:] if "verb" in line]
        assert not [line for line in thawed if line["event"] == "written"]
        refused = [line["error"] for line in thawed if line["event"] == "write failed"]
        record_property("measured", f"frozen in stop for {2 * LEASE_S:g} s, thawed: refused {refused}")


async def test_a_leader_that_stops_hands_over_at_once(
    field: ControlPlane, account: Path, api: ApiClient
) -> None:
    async with two(field, account) as (leader, other):
        await seen.settled(api, leader)
        followed = len(other.lines)
        leader.terminate()
        await other.said("started", after=followed)
        assert (await api.list("Pod", machines.NAMESPACE))[0]
