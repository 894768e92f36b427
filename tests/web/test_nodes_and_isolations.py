"""The API and the commands about nodes: faults with whom they hit, isolations asked for and taken back."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.cli.test_looking_commands import ask, call
from tests.engine.clusters import CHIP, Cluster, cluster, listening
from tests.web.test_http_api import error_of, live

TAINT = "mindie-ha.io/isolated"
P0 = "mindie-server-p0"


def idle_node(c: Cluster) -> str:
    """A node whose cards nobody holds."""
    used = {pod["spec"].get("nodeName") for name, pod in c.pods().items() if "-server-" in name}
    names = sorted(node["metadata"]["name"] for node in c.all("Node", ""))
    return str(next(name for name in names if name not in used))


async def test_a_person_isolates_and_releases_by_the_api() -> None:
    async with live() as (c, session):
        node = idle_node(c)
        place = f"/v1/nodes/{node}/isolations"
        asked = {"reason": "fan is loud", "person": "ann"}
        async with session.post(place, json=asked) as answer:
            found = await answer.json()
            assert (answer.status, found["changed"]) == (201, True)
        entry = found["isolation"]
        assert (entry["id"], entry["owner"], entry["until"]) == ("Person:-", ["person:ann"], "released")
        assert entry["undo"] == f"mindie-ha release {node}"
        async with session.post(place, json=asked) as answer:
            assert (answer.status, (await answer.json())["changed"]) == (200, False)
        await c.until(lambda: TAINT in c.taints(node), "tainted")
        await c.until(lambda: c.events("NodeIsolated"), "told")
        async with session.get(f"/v1/nodes/{node}") as answer:
            shown = await answer.json()
            assert (shown["tainted"], [one["id"] for one in shown["isolations"]]) == (True, ["Person:-"])
        async with session.delete(f"{place}/Person:-", params={"person": "bob"}) as answer:
            assert (answer.status, (await answer.json())["changed"]) == (200, True)
        await c.until(lambda: TAINT not in c.taints(node), "released")
        await c.until(lambda: c.events("NodeReleased"), "told")
        async with session.delete(f"{place}/Person:-") as answer:
            assert answer.status == 404
            assert "has no isolation Person:-" in (await error_of(answer))["what"]


@pytest.mark.parametrize(
    ("node", "body", "status", "what"),
    [
        pytest.param("nowhere", {"reason": "x", "person": "ann"}, 404, "no node nowhere", id="unknown-node"),
        pytest.param("node-0", {"person": "ann"}, 400, "a reason is needed", id="no-reason"),
        pytest.param("node-0", {"reason": "x", "for_s": "1h"}, 400, "number of seconds", id="for"),
        pytest.param("node-0", {"reason": "x", "for_s": -1}, 400, "out of range", id="negative"),
        pytest.param("node-0", {"reason": "x", "person": "a b"}, 400, "no user name", id="person"),
        pytest.param("node-0", {"reason": "x", "device": "3"}, 400, "is no card", id="device"),
        pytest.param("node-0", {"reason": "x", "until": "y"}, 400, "unknown field", id="field"),
        pytest.param("node-0", [1], 400, "expected an object", id="no-object"),
    ],
)
async def test_what_cannot_be_done_is_explained(node: str, body: object, status: int, what: str) -> None:
    async with live() as (_, session), session.post(f"/v1/nodes/{node}/isolations", json=body) as answer:
        assert answer.status == status
        assert what in (await error_of(answer))["what"]


async def test_faults_name_their_source_and_everybody_they_hit() -> None:
    async with live() as (c, session):
        node, idle = c.node_of(f"{P0}-master-0"), idle_node(c)
        await c.world.set_faults(idle, [CHIP])
        await c.world.set_faults(node, [{**CHIP, "level": "NotHandleFault"}])
        found: list[dict[str, object]] = []
        for _ in range(200):
            async with session.get("/v1/faults") as answer:
                found = (await answer.json())["faults"]
            if {one["node"] for one in found} == {node, idle}:
                break
            await asyncio.sleep(0.02)
        by_node = {str(one["node"]): one for one in found}
        assert (by_node[idle]["hits"], by_node[idle]["why"]) == ([], "nobody is hit")
        (hit,) = by_node[node]["hits"]  # type: ignore[misc]
        assert (hit["workload"], hit["pod"]) == (f"mindie/{P0}", f"{P0}-master-0")  # type: ignore[index]
        assert hit["effect"] == "recorded"  # type: ignore[index]
        assert f"mindx-dl-deviceinfo-{idle}" in str(by_node[idle]["evidence"])
        async with session.get("/v1/faults", params={"node": idle}) as answer:
            assert [one["node"] for one in (await answer.json())["faults"]] == [idle]
        async with session.get("/v1/faults", params={"node": "nowhere"}) as answer:
            assert answer.status == 404
        code, out, _ = await ask(c, "faults")
        assert code == 0
        assert f"{idle} Ascend910-2: ChipUnhealthy (80E18005 SeparateNPU" in out
        assert f"hits: mindie/{P0}, pod {P0}-master-0: recorded only" in out
        code, out, _ = await ask(c, "faults", "--node", idle, "-o", "json")
        assert [one["node"] for one in json.loads(out)["faults"]] == [idle]
        code, _, err = await ask(c, "faults", "--node", "nowhere")
        assert (code, err) == (1, "mindie-ha: there is no node nowhere\n")


async def test_the_commands_isolate_and_release_by_the_server() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        node = idle_node(c)
        code, out, err = await ask(c, "isolate", node, "--reason", "fan", "--for", "12h")
        assert (code, err) == (0, "")
        assert out.startswith(f"{node} is isolated, for 12h: fan\n")
        code, out, _ = await ask(c, "isolate", node, "--device", "Ascend910-3", "--reason", "hbm")
        assert (code, out.splitlines()[1]) == (
            0,
            f"take it back with: mindie-ha release {node} --device Ascend910-3",
        )
        await c.until(lambda: TAINT in c.taints(node), "tainted")
        code, out, err = await ask(c, "release", node, "--device", "Ascend910-4")
        assert (code, out) == (1, "")
        assert "is not isolated, but Ascend910-3, the node itself is" in err
        code, out, _ = await ask(c, "release", node)
        assert (code, out.splitlines()[0]) == (
            0,
            f"{node}: the isolation of the node itself is released (fan); the taint stays",
        )
        undo = f"mindie-ha release {node} --device Ascend910-3"
        assert out.splitlines()[1].startswith("  still isolated: Ascend910-3: hbm (for ")
        assert out.endswith(f"; {undo}\n")
        assert "Person" not in out
        assert TAINT in c.taints(node)
        code, out, _ = await ask(c, "release", node, "--all")
        words = "the isolation of Ascend910-3 is released (hbm); the controller takes the taint off"
        assert (code, out) == (0, f"{node}: {words}\n")
        await c.until(lambda: TAINT not in c.taints(node), "released")
        code, out, _ = await ask(c, "release", node, "--all")
        assert (code, out) == (0, f"{node}: nothing is isolated\n")
        code, _, err = await ask(c, "isolate", "nowhere", "--reason", "fan")
        assert (code, err) == (1, "mindie-ha: there is no node nowhere\n")
        code, _, err = await ask(c, "release", "nowhere")
        assert (code, err) == (1, "mindie-ha: there is no node nowhere\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("isolate", "n", "--reason", "x", "--for", "soon"), "is no duration", id="duration"),
        pytest.param(("isolate", "n"), "--reason", id="no-reason"),
        pytest.param(("isolate", "--reason", "x"), "NODE", id="no-node"),
        pytest.param(("release", "n", "--all", "--device", "Ascend910-1"), "not both", id="both"),
        pytest.param(
            ("release", "n", "--server", "http://h", "--kubeconfig", "f"), "give one of", id="two-sources"
        ),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(arguments: tuple[str, ...], complaint: str) -> None:
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err
