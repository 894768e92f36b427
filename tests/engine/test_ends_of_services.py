"""A service that is taken away: what we remembered of it goes with it, and its successor starts anew."""

from __future__ import annotations

import pytest

from .clusters import NAMESPACE, Cluster, cluster, quick, small_service

pytestmark = pytest.mark.looptime


def memories(c: Cluster) -> list[str]:
    names = [one["metadata"]["name"] for one in c.all("ConfigMap")]
    return [name for name in names if name.startswith(("mindie-ha-service-", "mindie-ha-ledger-"))]


async def take_away(c: Cluster) -> None:
    for job in c.all("AscendJob"):
        await c.api.delete("AscendJob", job["metadata"]["name"], NAMESPACE)
    await c.until(lambda: not c.all("AscendJob") and not c.pods(), "the service is gone")


async def test_nothing_is_kept_of_a_service_that_is_over() -> None:
    async with cluster(settings=quick()) as c:
        assert memories(c)
        await take_away(c)
        await c.until(lambda: not memories(c), "its ledgers are collected")
        await c.until(lambda: not any(one.workloads for one in c.app.reports()), "not shown")
        await c.quiet()


async def test_a_service_that_is_applied_again_counts_its_tables_from_the_start() -> None:
    async with cluster(settings=quick()) as c:
        await take_away(c)
        await c.until(lambda: not memories(c), "its ledgers are collected")
        jobs = [one for one in small_service() if one["kind"] == "AscendJob"]
        await c.apply(jobs)
        await c.serving()
        assert c.table()["generation"] in (1, 2)
        assert set(c.table()["ids"].values()) == {2, 3}


async def test_the_memory_of_a_service_outlives_all_but_its_last_job() -> None:
    async with cluster(settings=quick()) as c:
        before = memories(c)
        first = c.all("AscendJob")[0]["metadata"]["name"]
        await c.api.delete("AscendJob", first, NAMESPACE)
        await c.until(lambda: len(c.all("AscendJob")) == 3, "one job less", deadline_s=60)
        await c.quiet()
        assert [name for name in before if "service" in name] == [
            name for name in memories(c) if "service" in name
        ]
