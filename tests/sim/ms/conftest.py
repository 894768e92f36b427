"""Pods and tables for the MS programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mindie_ha.sim.actors.programs import PodSandbox


class FakePod:
    """A sandbox whose mount and readiness a test can see and change."""

    def __init__(self, name: str, ip: str, *, app: str, env: Mapping[str, str]) -> None:
        self.ready = False
        self.table = ""
        self.sandbox = PodSandbox(
            namespace="mindie",
            name=name,
            uid=f"uid-{name}-{ip}",
            ip=ip,
            host_ip="10.0.0.1",
            node="node-0",
            labels={"app": app, "jobID": "mindie-ms"},
            annotations={},
            env={"POD_IP": ip, **env},
            volumes={},
            set_ready=self._set_ready,
            annotate=self._annotate,
            read_volume=self._read_volume,
        )

    def _set_ready(self, ready: bool) -> None:
        self.ready = ready

    async def _annotate(self, annotations: Mapping[str, str | None]) -> None:
        raise NotImplementedError("MS pods annotate nothing")

    def _read_volume(self, name: str) -> Mapping[str, str]:
        return {"global_ranktable.json": self.table} if name == "global-ranktable" and self.table else {}


def server(ip: str, *, rank: int = 0, **fields: Any) -> dict[str, Any]:
    device = {"device_id": "0", "device_ip": "10.1.0.1", "device_logical_id": "0", "rank_id": str(rank)}
    return {"server_id": "10.0.0.1", "server_ip": ip, "device": [device], **fields}


def group(number: int, *servers: dict[str, Any], deploy: str | None = None) -> dict[str, Any]:
    label = {} if deploy is None else {"deploy_server": deploy}
    return {"group_id": str(number), **label, "server_count": str(len(servers)), "server_list": list(servers)}


def table(*groups: dict[str, Any], coordinators: tuple[str, ...] = ("127.5.0.1",)) -> dict[str, Any]:
    ms = [group(0, *({"server_ip": ip} for ip in coordinators)), group(1, {"server_ip": "127.5.0.2"})]
    return {"version": "1.0", "status": "completed", "server_group_list": [*ms, *groups]}


@pytest.fixture
def one_p_one_d() -> dict[str, Any]:
    """A good table: one prefill instance of two pods, one decode instance."""
    return table(
        group(2, server("127.5.1.1", rank=8), server("127.5.1.2"), deploy="0"),
        group(3, server("127.5.2.1"), deploy="1"),
    )


@pytest.fixture
def make_controller(one_p_one_d: dict[str, Any]) -> Callable[[str, str], FakePod]:
    """Controller pods by name and IP, whose mounted table is completed."""

    def make(name: str, ip: str) -> FakePod:
        env = {
            "MINDX_TASK_ID": "mindie-ms",
            "MINDX_SERVER_IP": "127.0.0.1",
            "APP_TYPE": "mindie-ms-controller",
        }
        pod = FakePod(name, ip, app="mindie-ms-controller", env=env)
        pod.table = json.dumps(one_p_one_d)
        return pod

    return make


@pytest.fixture
def controller_pod(make_controller: Callable[[str, str], FakePod]) -> FakePod:
    """The usual Controller pod."""
    return make_controller("mindie-ms-controller-master-0", "127.5.0.2")


@pytest.fixture
def make_coordinator(one_p_one_d: dict[str, Any]) -> Callable[[str, str], FakePod]:
    """Coordinator pods by name and IP."""

    def make(name: str, ip: str) -> FakePod:
        env = {"APP_TYPE": "mindie-ms-coordinator"}
        pod = FakePod(name, ip, app="mindie-ms-coordinator", env=env)
        pod.table = json.dumps(one_p_one_d)
        return pod

    return make


@pytest.fixture
def edit(one_p_one_d: dict[str, Any]) -> Callable[[Callable[[dict[str, Any]], object]], str]:
    """The good table after one change, as text."""

    def change(how: Callable[[dict[str, Any]], object]) -> str:
        how(one_p_one_d)
        return json.dumps(one_p_one_d)

    return change
