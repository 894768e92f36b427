"""A connection to a cluster IP ends at a Ready pod that the Service selects, else on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.sim.actors.caches import Cache
from mindie_ha.sim.client import ApiClient
from mindie_ha.sim.ms.routes import straight, through_services

IP = "10.0.0.7"


def pod(name: str, *, ready: bool = True, **labels: str) -> dict[str, Any]:
    port = {"name": "grpc", "containerPort": 9000}
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1", "labels": labels},
        "spec": {"containers": [{"ports": [port]}]},
        "status": {
            "podIP": f"127.9.0.{name}",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def service(selector: dict[str, str] | None, target: object) -> dict[str, Any]:
    spec = {"clusterIP": IP, "selector": selector, "ports": [{"port": 8899, "targetPort": target}]}
    meta = {"name": "s", "namespace": "n", "uid": "s", "resourceVersion": "1"}
    return {"metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("selector", "target", "pods", "end"),
    [
        pytest.param(
            {"a": "1"}, "grpc", [pod("1", b="1"), pod("2", a="1")], ("127.9.0.2", 9000), id="by name"
        ),
        pytest.param({"a": "1"}, 7000, [pod("2", a="1")], ("127.9.0.2", 7000), id="by number"),
        pytest.param({"a": "1"}, None, [pod("2", a="1")], ("127.9.0.2", 8899), id="same port"),
        pytest.param({"a": "1"}, 7000, [pod("2", ready=False, a="1")], ("127.0.0.1", 8899), id="not ready"),
        pytest.param(None, 7000, [pod("2", a="1")], ("127.0.0.1", 8899), id="no selector"),
    ],
)
async def test_a_cluster_ip_leads_to_a_pod(
    selector: dict[str, str] | None, target: object, pods: list[dict[str, Any]], end: tuple[str, int]
) -> None:
    cache = Cache(api=ApiClient(None), clock=LoopClock())  # type: ignore[arg-type]
    cache.observe("Service", service(selector, target))
    for each in pods:
        cache.observe("Pod", each)
    assert through_services(cache, IP, 8899) == end
    assert through_services(cache, "127.5.0.1", 8899) == ("127.5.0.1", 8899)
    assert straight(IP, 8899) == (IP, 8899)
