"""`status` with a kubeconfig alone: who leads is judged by the Lease."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .test_isolations_without_a_server import command, simulated


def lease(*, renewed_at_s: float, holder: str = "ha-0") -> dict[str, Any]:
    stamp = datetime.fromtimestamp(renewed_at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "mindx-dl", "name": "mindie-ha"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": stamp},
    }


async def test_a_leader_that_does_not_renew_leads_no_longer(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (cluster, path):
        code, out, _ = await command("status", "--kubeconfig", path)
        assert (code, out.splitlines()[0]) == (1, "nobody leads: nothing is done")
        assert "leader: nobody (there is no Lease mindx-dl/mindie-ha)" in out
        await cluster.api.create("Lease", lease(renewed_at_s=time.time() - 300))
        _, out, _ = await command("status", "--kubeconfig", path)
        assert "leader: nobody (ha-0 did, and its Lease expired: not renewed for 30" in out
        await cluster.api.patch(
            "Lease", "mindie-ha", "mindx-dl", {"spec": lease(renewed_at_s=time.time())["spec"]}
        )
        code, out, _ = await command("status", "--kubeconfig", path)
        assert (code, "nobody leads" in out) == (0, False)
        assert "leader: ha-0 (its Lease was renewed " in out
        await cluster.api.patch(
            "Lease", "mindie-ha", "mindx-dl", {"spec": lease(renewed_at_s=time.time(), holder="")["spec"]}
        )
        _, out, _ = await command("status", "--kubeconfig", path)
        assert "leader: nobody (Lease mindx-dl/mindie-ha is released)" in out
