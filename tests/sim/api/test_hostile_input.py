"""Whatever a client sends, the answer is a Status, never an exception, and the server goes on."""

# ruff: noqa: SIM905 - split words keep the tables readable

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.requests import ApiRequest
from mindie_ha.sim.resources import RESOURCES
from mindie_ha.sim.server import ApiServer
from tests.sim.api.conftest import Api, config_map

KEYS = st.sampled_from(
    "metadata spec status data labels annotations name uid finalizers names group ownerReferences containers "
    "versions selector conditions tolerations type scope gracePeriodSeconds preconditions resourceVersion "
    "target deleteOptions $patch op path template minAvailable plural kind storage schema clusterIP "
    "deletionTimestamp".split()
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from(["", "a", "x y", "1", "-"])
)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
CONTENT = st.sampled_from(
    "application/json application/yaml application/json-patch+json application/merge-patch+json "
    "application/strategic-merge-patch+json application/apply-patch+yaml text/plain".split()
)
PARAMETERS = st.sampled_from(
    "dryRun fieldManager limit continue labelSelector fieldSelector resourceVersion propagationPolicy force "
    "fieldValidation gracePeriodSeconds resourceVersionMatch".split()
)
VALUES = st.sampled_from(["", "All", "Strict", "1", "x", "a=b", "a in (", "true", "Exact", "Orphan", "eyJ9"])
QUERIES = st.dictionaries(PARAMETERS, VALUES, max_size=2)


@st.composite
def requests(draw: st.DrawFn) -> ApiRequest:
    resource = draw(st.sampled_from(RESOURCES))
    space = "/namespaces/mindie" if resource.namespaced else ""
    tail = draw(
        st.sampled_from(["", "/a", "/a/status", "/a/binding", "/a/eviction", "/a/b/c", "/%2e%2e", "/a%00b"])
    )
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]))
    body: Any = draw(BODIES)
    if isinstance(body, dict) and draw(st.booleans()):
        meta = body.get("metadata")
        body["metadata"] = {**(meta if isinstance(meta, dict) else {}), "name": "a"}
    raw = draw(st.one_of(st.just(json.dumps(body).encode()), st.binary(max_size=20)))
    path = f"{resource.base_path}{space}/{resource.plural}{tail}"
    return ApiRequest(method, path, draw(QUERIES), {"content-type": draw(CONTENT)}, raw)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(requests(), min_size=1, max_size=8))
def test_every_request_gets_an_answer_and_others_are_unharmed(sent: list[ApiRequest]) -> None:
    async def play() -> None:
        server = ApiServer(clock=LoopClock(wall_origin_s=0, speed=1000), entropy=Entropy(1))
        for request in sent:
            response = await server.handle(request)
            body = json.loads(response.body)
            expected = response.status == 504 or "reason" not in body  # as a real server says ParseUint
            assert response.status < 500 or expected, body
            assert response.status < 400 or (body["kind"], body["code"]) == ("Status", response.status)
        server.garbage.collect()
        await Api(server).ok("POST", "/api/v1/namespaces/default/configmaps", config_map("after"))

    with asyncio.Runner() as runner:
        runner.run(play())
