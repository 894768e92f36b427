"""Two replicas on the real control plane: the leader is killed in each phase, the other finishes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mindie_ha.sim.client import ApiClient, ApiError
from tests.real import machines, seen
from tests.real.controllers import Controller, running, until
from tests.real.test_recoveries import CHIP, P0
from tools.control_plane.planes import ControlPlane

PHASES = ("isolate", "stop", "gone", "recreate", "place", "table", "settle")
LEDGER = f"mindie-ha-ledger-ascendjob-{P0}"
PODS_OF_P0 = {f"{P0}-master-0", f"{P0}-worker-0"}
LEASE = {
    "MINDIE_HA_LEASE__DURATION_S": "4",
    "MINDIE_HA_LEASE__RENEW_S": "1",
    "MINDIE_HA_LEASE__RETRY_S": "1.5",
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

        async def leads() -> Controller | None:
            events = {one: {str(line.get("event")) for line in one.lines} for one in both}
            leading = [one for one in both if "started" in events[one]]
            waiting = [one for one in both if "standing by" in events[one]]
            return leading[0] if len(leading) == 1 and len(waiting) == 1 else None

        leader = await until(leads, what="one leads and one stands by")
        yield leader, next(one for one in both if one is not leader)


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
    phase: str, field: ControlPlane, account: Path, api: ApiClient, capsys: pytest.CaptureFixture[str]
) -> None:
    async with two(field, account) as (leader, other):
        before = await seen.settled(api, leader)
        closed = await seen.closed_so_far(leader)
        node = before.nodes[f"{P0}-master-0"]
        follow = asyncio.create_task(reached(api, phase))
        await asyncio.sleep(0.5)  # the watch is open
        machines.set_faults(field, node, CHIP)
        at = await asyncio.wait_for(follow, machines.WITHIN_S)
        await leader.kill()
        loop = asyncio.get_running_loop()
        killed_s = loop.time()
        await other.said("started")
        took_s = loop.time() - killed_s
        after_ = await seen.settled(api, other, closed={P0: closed[P0] + 1})
        assert after_.changed_since(before) == PODS_OF_P0
        deleted = Counter(
            line["uid"]
            for line in (*leader.lines, *other.lines)
            if line.get("verb") == "delete" and line.get("result") == "done"
        )
        assert all(count == 1 for count in deleted.values()), deleted
        assert set(deleted) <= set(before.uids.values()), "a replacement was deleted"
        with capsys.disabled():
            print(f"\nkilled in {at} (asked for {phase}): the other led after {took_s:.1f} s")
        machines.set_faults(field, node, None)
        await seen.released(api)


async def test_a_leader_that_stops_hands_over_at_once(
    field: ControlPlane, account: Path, api: ApiClient
) -> None:
    async with two(field, account) as (leader, other):
        await seen.settled(api, leader)
        leader.terminate()
        await other.said("started")
        assert (await api.list("Pod", machines.NAMESPACE))[0]
