"""What is recorded of a real API server is still what it answers; the embedded one is compared with that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.server import ApiServer
from mindie_ha.sim.transports import connected
from tools.conformance.playing import RECORDED
from tools.conformance.running import all_answered
from tools.control_plane.objects import install_kinds
from tools.control_plane.planes import ControlPlane, Options


@pytest.fixture
def alone(built: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    """An API server in whose objects nobody else has a hand."""
    plane = ControlPlane(built, tmp_path / "plane", Options(api_alone=True))
    plane.start()
    try:
        install_kinds(plane)
        yield plane
    finally:
        plane.stop()


async def test_the_real_and_the_embedded_server_answer_alike(alone: ControlPlane) -> None:
    async with connected(kubeconfigs.read(alone.kubeconfig)) as exchange:
        real = await all_answered(exchange, prefix="live")
    assert real == json.loads(RECORDED.read_text(encoding="utf-8")), "run python -m tools.conformance"
    server = ApiServer(clock=LoopClock(), entropy=Entropy(1))
    embedded = await all_answered(server, prefix="embedded")
    for name, answers in real.items():
        assert embedded[name] == answers, name
