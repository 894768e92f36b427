"""The webhook asked by a real API server: warnings, refusals, and nobody kept from working without us."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from mindie_ha.app.webhooks import WebhookServer
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.settings import WebhookSettings
from mindie_ha.web.admission import PATH
from tests.intake.job_patches import label, patched, unshared
from tests.intake.job_variants import COORDINATOR
from tools.control_plane.objects import RefusedError, request
from tools.control_plane.planes import ControlPlane

ROOT = Path(__file__).resolve().parents[2]
TLS = ROOT / "tests" / "data" / "tls"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
JOBS = "/apis/mindxdl.gitee.com/v1/namespaces/default/ascendjobs"
ASKED_S = 120.0


def hook(port: int) -> dict[str, Any]:
    """The shipped configuration, with an address that a control plane without Services reaches."""
    path = ROOT / "manifests" / "webhook" / "webhook.yaml"
    _, found = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    (one,) = found["webhooks"]
    authority = base64.b64encode((TLS / "ca.crt").read_bytes()).decode()
    one["clientConfig"] = {"url": f"https://127.0.0.1:{port}{PATH}", "caBundle": authority}
    return dict(found)


@asynccontextmanager
async def serving(plane: ControlPlane, *, enforce: bool) -> AsyncIterator[WebhookServer]:
    settings = WebhookSettings(
        enabled=True,
        listen="127.0.0.1:0",
        enforce=enforce,
        tls_cert=str(TLS / "server.crt"),
        tls_key=str(TLS / "server.key"),
    )
    server = WebhookServer(settings, metrics=Metrics(), clock=LoopClock(), heard=lambda *_: None)
    created = False
    try:
        await asyncio.to_thread(request, plane, "POST", HOOKS, hook(await server.start()))
        created = True
        yield server
    finally:
        await server.close()
        if created:
            await asyncio.to_thread(request, plane, "DELETE", f"{HOOKS}/mindie-ha")


def coordinator(name: str, *, broken: bool) -> dict[str, Any]:
    subject = patched(COORDINATOR, label("pod-rescheduling", "true" if broken else "on"), kind="AscendJob")
    body: dict[str, Any] = unshared(subject.body)
    body["metadata"] = {**body["metadata"], "name": name, "namespace": "default"}
    return body


async def create(plane: ControlPlane, body: dict[str, Any]) -> tuple[int, list[str]]:
    """Status and warnings of a creation."""
    document = json.loads(plane.kubeconfig.read_text(encoding="utf-8"))
    token = document["users"][0]["user"]["token"]
    trusted = ssl.create_default_context(cafile=str(plane.home / "pki" / "ca.crt"))
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(plane.server + JOBS, json=body, ssl=trusted) as answer,
    ):
        return answer.status, answer.headers.getall("Warning", [])


async def until_asked(plane: ControlPlane, prefix: str) -> None:
    """The API server takes a moment to know a new configuration."""
    async with asyncio.timeout(ASKED_S):
        number = 0
        while not (await create(plane, coordinator(f"{prefix}-{number}", broken=True)))[1]:
            number += 1
            await asyncio.sleep(0.5)


async def test_findings_are_warnings_and_without_us_work_goes_on(plane: ControlPlane) -> None:
    async with serving(plane, enforce=False) as server:
        await until_asked(plane, "warned")
        status, warnings = await create(plane, coordinator("warned", broken=True))
        assert status == 201
        assert "pod-rescheduling-value" in " ".join(warnings)
        assert await create(plane, coordinator("clean", broken=False)) == (201, [])
        await server.close()
        assert await create(plane, coordinator("alone", broken=True)) == (201, [])


async def test_enforced_new_errors_are_refused_and_old_ones_can_be_changed(plane: ControlPlane) -> None:
    assert (await create(plane, coordinator("old", broken=True)))[0] == 201
    async with serving(plane, enforce=True):
        async with asyncio.timeout(ASKED_S):
            number = 0
            while (await create(plane, coordinator(f"refused-{number}", broken=True)))[0] != 422:
                number += 1
                await asyncio.sleep(0.5)
        change = {"metadata": {"annotations": {"written-by": "a controller"}}}
        await asyncio.to_thread(request, plane, "PATCH", f"{JOBS}/old", change)
        with pytest.raises(RefusedError, match="pod-rescheduling-value"):
            await asyncio.to_thread(request, plane, "POST", JOBS, coordinator("refused", broken=True))
