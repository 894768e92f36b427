"""`isolate`, `release` and `faults` with a kubeconfig alone: the ledger is written, nothing else."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mindie_ha.demo import clusters
from mindie_ha.demo.clusters import ClusterPlan, RunningCluster
from mindie_ha.kit.logs import make_log

from .test_looking_commands import call

NODE = "node-1"
LEDGER = f"mindie-ha-node-{NODE}"


@asynccontextmanager
async def simulated(folder: Path) -> AsyncIterator[tuple[RunningCluster, str]]:
    """A cluster with a socket, and its kubeconfig."""
    path = folder / "kubeconfig"
    plan = ClusterPlan(kubeconfig=path, nodes=3, seed=1)
    async with clusters.running(plan, log=make_log(io.StringIO(), level="error")) as cluster:
        yield cluster, str(path)


async def command(*arguments: str) -> tuple[int, str, str]:
    """One command beside the cluster."""
    return await asyncio.to_thread(call, *arguments)


async def test_the_ledger_is_written_without_a_controller(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (cluster, path):
        at = ("--kubeconfig", path)
        code, out, err = await command("isolate", NODE, "--reason", "fan", *at)
        assert (code, err) == (0, "")
        assert out.startswith(f"{NODE} is isolated, until it is released: fan")
        _, out, _ = await command("status", *at)
        line = f"isolated: {NODE}: fan, until released (mindie-ha release {NODE})"
        assert line in out.splitlines()
        code, out, _ = await command("isolate", NODE, "--reason", "fan", *at)
        assert (code, out.splitlines()[0]) == (0, f"{NODE} was isolated already, until it is released: fan")
        (entry,) = await stored(cluster)
        assert (entry["id"], entry["until"], entry["overruled_at_s"]) == ("Person:-", "released", None)
        code, out, _ = await command("release", NODE, "-o", "json", *at)
        assert (code, [one["id"] for one in json.loads(out)["released"]]) == (0, ["Person:-"])
        (entry,) = await stored(cluster)
        assert entry["overruled_at_s"] is not None
        code, out, _ = await command("release", NODE, *at)
        assert (code, out) == (0, f"{NODE}: nothing is isolated\n")
        code, out, _ = await command("faults", *at)
        assert (code, out) == (0, "no fault\n")
        code, _, err = await command("isolate", "nowhere", "--reason", "fan", *at)
        assert (code, err) == (1, "mindie-ha: there is no node nowhere\n")


async def stored(cluster: RunningCluster) -> list[dict[str, Any]]:
    """The entries of the node's ledger."""
    found = await cluster.api.get("ConfigMap", LEDGER, "mindx-dl")
    assert found is not None
    entries: list[dict[str, Any]] = json.loads(found["data"]["ledger.json"])["isolations"]
    return entries
