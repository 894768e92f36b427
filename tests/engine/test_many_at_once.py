"""Thirty instances fail in the same moment: they recover beside each other, within the limits of our client.

Instances of one pod with two cards, four of them on a server, keep the cluster small enough for a test.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from mindie_ha.demo import manifests
from mindie_ha.model.settings import ClusterSettings

from .clusters import CHIP, Cluster, Object, cluster, quick

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(240)]
COUNT = 30
WRITES_PER_S = 50.0
NAMES = tuple(f"p{number}" for number in range(COUNT // 2)) + tuple(f"d{n}" for n in range(COUNT // 2))


def many(names: Iterable[str]) -> list[Object]:
    """The A2 service with these instances, each a copy of the first Prefill or Decode one."""
    found, models = [], {}
    for obj in manifests.load("pd-a2"):
        name = obj["metadata"]["name"]
        base = name.removeprefix("rings-config-")
        if not base.startswith("mindie-server-"):
            found.append(obj)
        elif base.endswith("0"):
            if obj["kind"] == "AscendJob":
                del obj["spec"]["replicaSpecs"]["Worker"]
                obj["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 1
            text = json.dumps(obj).replace('"huawei.com/Ascend910": 8', '"huawei.com/Ascend910": 2')
            models[name] = text.replace("1000Gi", "100Gi")
    for each in names:
        old, new = f"mindie-server-{each[0]}0", f"mindie-server-{each}"
        found += [json.loads(text.replace(old, new)) for name, text in models.items() if old in name]
    return found


def deletions(c: Cluster) -> list[float]:
    """When our deletions of pods were answered."""
    return [write.at_s for write in c.judge.writes if write.method == "DELETE" and "/pods/" in write.path]


def busiest(times_s: list[float]) -> int:
    """The most of them within any one second."""
    return max(sum(begin <= at_s < begin + 1.0 for at_s in times_s) for begin in times_s)


async def recover(c: Cluster, names: Iterable[str], *, closed: int) -> float:
    """Let a card fail under each of these instances; how long until the last one is recovered."""
    jobs = [f"mindie-server-{name}" for name in names]
    began_s = c.clock.monotonic()
    broken: dict[str, list[Object]] = {}
    for job in jobs:
        pod = c.pods()[f"{job}-master-0"]
        card = pod["metadata"]["annotations"]["huawei.com/AscendReal"].split(",")[0]
        broken.setdefault(pod["spec"]["nodeName"], []).append({**CHIP, "device": card})
    for node, faults in broken.items():
        await c.world.set_faults(node, faults)
    for job in jobs:
        record = await c.recovered(job, closed=closed if job == jobs[0] else 1, deadline_s=600)
        assert (record["outcome"], record["rungs"]) == ("recovered", ["job"])
    took_s = c.clock.monotonic() - began_s
    for node in broken:
        await c.world.heal(node)
    return took_s


async def test_case_089_thirty_at_once_take_less_than_one_and_a_half_times_as_long_as_one() -> None:
    settings = quick(settle_s=30.0).model_copy(update={"cluster": ClusterSettings(writes_per_s=WRITES_PER_S)})
    async with cluster(service=many(NAMES), servers=NAMES, nodes=14, settings=settings, rest_s=0.1) as c:
        one_s = await recover(c, NAMES[:1], closed=1)
        await c.clock.sleep(30)
        before = len(deletions(c))
        all_s = await recover(c, NAMES, closed=2)
        times_s = deletions(c)[before:]
        assert len(times_s) == COUNT
        assert busiest(times_s) <= WRITES_PER_S
        assert all_s < 1.5 * one_s
