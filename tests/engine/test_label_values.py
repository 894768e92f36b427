"""Five ways to write the switch, from YAML through the API server to Event and log; lint asks the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from mindie_ha.policy.label_values import Standing, judge
from mindie_ha.sim.requests import ApiRequest

from .clusters import NAMESPACE, NOT_READY, Cluster, cluster, quick
from .test_failovers import COORDINATOR, service

pytestmark = pytest.mark.looptime
LABEL = "pod-rescheduling"
PATH = f"/apis/mindxdl.gitee.com/v1/namespaces/{NAMESPACE}/ascendjobs"
DECODER = "json: cannot unmarshal bool into Go struct field ObjectMeta.labels of type string"


def others() -> list[dict[str, Any]]:
    return [obj for obj in service() if obj["metadata"]["name"] != COORDINATOR]


def manifest(label: str, text: str) -> str:
    """The Coordinator's AscendJob as a person writes it: YAML with this text after the label."""
    [job] = [obj for obj in service() if obj["metadata"]["name"] == COORDINATOR]
    job["metadata"]["labels"][label] = "VALUE"
    return yaml.safe_dump(job).replace(f"{label}: VALUE", f"{label}: {text}")


async def applied(c: Cluster, text: str) -> str:
    """Post YAML as kubectl would; the refusal's message, empty where it was taken."""
    request = ApiRequest(
        method="POST",
        path=PATH,
        query={},
        headers={"content-type": "application/yaml"},
        body=text.encode(),
    )
    answer = await c.server.handle(request)
    body: dict[str, Any] = json.loads(answer.body)
    return "" if answer.status < 300 else str(body["message"])


def logged(c: Cluster) -> str:
    """Every text in the log, as a person reads it."""
    lines = (json.loads(line) for line in c.log().splitlines())
    return "\n".join(text for line in lines for text in map(str, line.values()))


@pytest.mark.parametrize(
    ("text", "refused", "rung"),
    [
        pytest.param("on", DECODER, "", id="unquoted-on"),
        pytest.param("true", DECODER, "", id="unquoted-true"),
        pytest.param('"On "', "a valid label must be", "", id="On-blank"),
        pytest.param('"on"', "", "pod", id="on"),
        pytest.param('"true"', "", "job", id="true"),
        pytest.param('"On"', "", "job", id="On"),
    ],
)
async def test_what_becomes_of_pod_rescheduling(text: str, refused: str, rung: str) -> None:
    value = yaml.safe_load(text)
    said = judge(LABEL, value)
    async with cluster(service=others(), nodes=10, start=False) as c:
        message = await applied(c, manifest(LABEL, text))
        assert refused in message
        assert bool(message) is (said.standing is Standing.REFUSED)
        if message:
            return
        await c.start(quick())
        await c.serving()
        await c.world.set_faults(c.node_of(f"{COORDINATOR}-master-0"), [NOT_READY])
        closed = await c.recovered(COORDINATOR)
        assert closed["rungs"] == [rung]
        told = [event["message"] for event in c.events("UnknownPodRescheduling")]
        assert told == ([said.sentence] if said.message else [])
        if said.message:
            assert f"{NAMESPACE}/{COORDINATOR}: {said.sentence}" in logged(c)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        pytest.param("on", DECODER, id="unquoted-on"),
        pytest.param("true", DECODER, id="unquoted-true"),
        pytest.param('"On "', "a valid label must be", id="On-blank"),
        pytest.param('"on"', "", id="on"),
        pytest.param('"true"', "", id="true"),
    ],
)
async def test_what_becomes_of_fault_scheduling(text: str, refused: str) -> None:
    said = judge("fault-scheduling", yaml.safe_load(text))
    async with cluster(service=others(), nodes=10, start=False) as c:
        message = await applied(c, manifest("fault-scheduling", text))
        assert refused in message
        assert bool(message) is (said.standing is Standing.REFUSED)
        if message:
            return
        await c.start(quick())
        await c.until(lambda: c.events("UnknownFaultScheduling"), "told")
        [event] = c.events("UnknownFaultScheduling")
        assert event["message"] == said.sentence
        assert f"{NAMESPACE}/{COORDINATOR}: {said.sentence}" in logged(c)
