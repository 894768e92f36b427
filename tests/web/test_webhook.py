"""The webhook on its own port with TLS, in a controller that runs."""

from __future__ import annotations

import io
import json
import ssl
from pathlib import Path

import aiohttp
import pytest
from pydantic import ValidationError

from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.settings import WebhookSettings
from mindie_ha.web.admission import PATH
from tests.engine.clusters import listening
from tests.intake.job_variants import COORDINATOR
from tests.intake.test_admission import ERROR, nothing, review

from .test_http_api import live

TLS = Path(__file__).parents[1] / "data" / "tls"


def webhook(*, enforce: bool = False) -> WebhookSettings:
    return WebhookSettings(
        enabled=True,
        listen="127.0.0.1:0",
        enforce=enforce,
        tls_cert=str(TLS / "server.crt"),
        tls_key=str(TLS / "server.key"),
    )


async def test_a_running_controller_answers_the_api_server_and_nobody_else() -> None:
    trusted = ssl.create_default_context(cafile=str(TLS / "ca.crt"))
    settings = listening().model_copy(update={"webhook": webhook(enforce=True)})
    async with live(settings) as (c, _), aiohttp.ClientSession() as session:
        base = f"https://localhost:{c.app.webhook_port}"
        for patch, allowed in ((nothing, True), (ERROR, False)):
            async with session.post(base + PATH, json=review(COORDINATOR, patch), ssl=trusted) as answer:
                assert answer.status == 200
                assert (await answer.json())["response"]["allowed"] is allowed
        for body in (b"{", b"\xff", b"[]", json.dumps({"kind": "Pod"}).encode()):
            async with session.post(base + PATH, data=body, ssl=trusted) as answer:
                assert answer.status == 400
        async with session.post(base + PATH, data=io.BytesIO(b"x" * (4 << 20)), ssl=trusted) as answer:
            assert answer.status == 413
        async with session.get(base + "/v1/services", ssl=trusted) as answer:
            assert answer.status == 404
        assert counted(c.app.metrics) == {"allowed": 1, "refused": 1, "malformed": 4}


def counted(metrics: Metrics) -> dict[str, float]:
    samples = [sample for family in metrics.admissions.collect() for sample in family.samples]
    return {one.labels["answer"]: one.value for one in samples if one.name.endswith("_total")}


async def test_it_is_off_by_default() -> None:
    async with live(listening()) as (c, _):
        assert c.app.webhook_port == 0


def test_it_needs_tls() -> None:
    with pytest.raises(ValidationError, match=r"needs webhook\.tls_cert"):
        WebhookSettings(enabled=True)
