"""`adopt` by the API, by the command with a server, and with a kubeconfig alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_isolations_without_a_server import command, simulated
from tests.cli.test_looking_commands import ask, call
from tests.engine.clusters import NAMESPACE, Cluster, cluster, listening, small_service
from tests.web.test_http_api import error_of, live
from tests.web.test_resets import uid_of

P0, MS = "mindie-server-p0", "mindie-ms-coordinator"
KEY = f"{NAMESPACE}/{P0}"
STRATEGY = "ProcessRecoverStrategy"


def labels(c: Cluster, job: str) -> dict[str, str]:
    found = c.get("AscendJob", job)
    assert found is not None
    return dict(found["metadata"]["labels"])


def note(c: Cluster, job: str) -> str | None:
    group = c.get("PodGroup", c.podgroup(job)) or {"metadata": {}}
    value: str | None = (group["metadata"].get("annotations") or {}).get(STRATEGY)
    return value


def unlabelled() -> list[dict[str, object]]:
    """The service whose Prefill instance asks for nothing."""
    found = small_service()
    for obj in found:
        if obj["metadata"]["name"] == P0:
            obj["metadata"]["labels"].pop("fault-scheduling")
    return found


async def test_a_job_is_labelled_by_the_api_and_adopted_by_the_controller() -> None:
    async with live() as (c, session):
        await c.label_job(P0, fault_scheduling="off")
        await c.until(lambda: c.state(P0) == "ok", "seen")
        place = f"/v1/workloads/{KEY}/adopt"
        async with session.post(place, json={"mode": "grace", "person": "ann"}) as answer:
            found = await answer.json()
            assert (answer.status, found["changed"]) == (200, True)
            assert found["labels"] == {"fault-scheduling": "grace"}
        assert labels(c, P0)["fault-scheduling"] == "grace"
        await c.until(lambda: note(c, P0) == "mindie-ha", "adopted")
        async with session.post(place) as answer:
            assert (answer.status, (await answer.json())["changed"]) == (200, False)
        assert '"by": "person:ann"' in c.log()


@pytest.mark.parametrize(
    ("name", "body", "status", "what"),
    [
        pytest.param("nothing", {}, 404, "no workload mindie/nothing", id="unknown"),
        pytest.param(P0, {"mode": "hard"}, 400, "no mode", id="mode"),
        pytest.param(P0, {"pod_rescheduling": "yes"}, 400, "must be true or false", id="flag"),
        pytest.param(P0, {"pod_rescheduling": True}, 400, "restarts as a whole", id="server"),
        pytest.param(P0, {"person": "a b"}, 400, "no user name", id="person"),
        pytest.param(P0, {"force": True}, 400, "unknown field", id="field"),
    ],
)
async def test_what_cannot_be_done_is_explained(name: str, body: object, status: int, what: str) -> None:
    place = f"/v1/workloads/{NAMESPACE}/{name}/adopt"
    async with live() as (_, session), session.post(place, json=body) as answer:
        assert answer.status == status
        assert what in (await error_of(answer))["what"]


async def test_the_command_says_what_it_did_and_what_holds() -> None:
    service = unlabelled()
    async with cluster(settings=listening(), speed=20.0, serve=True, service=service) as c:
        code, out, err = await ask(c, "adopt", KEY)
        assert (code, err) == (0, "")
        assert out.splitlines()[0] == f"{KEY} is labelled"
        assert "label fault-scheduling is now 'force' (was 'absent')" in out
        await c.until(lambda: note(c, P0) == "mindie-ha", "adopted")
        code, out, _ = await ask(c, "adopt", KEY)
        assert code == 0
        assert out.startswith(f"{KEY} is labelled so already; nothing was changed\n  adopted: ")
        code, out, _ = await ask(c, "adopt", f"{NAMESPACE}/{MS}", "--pod-rescheduling", "-o", "json")
        assert (code, json.loads(out)["labels"]["pod-rescheduling"]) == (0, "on")
        code, _, err = await ask(c, "adopt", KEY, "--pod-rescheduling")
        assert (code, err.count("\n")) == (2, 1)
        code, _, err = await ask(c, "adopt", f"{NAMESPACE}/nothing")
        assert (code, err) == (1, f"mindie-ha: there is no workload {NAMESPACE}/nothing\n")
        body = {"metadata": {"annotations": {STRATEGY: "platform-x"}}}
        await c.api.patch("PodGroup", c.podgroup(P0), NAMESPACE, body)
        await c.until(lambda: c.events("WaitingForPlatform"), "seen")
        code, _, err = await ask(c, "adopt", KEY, "--mode", "grace")
        assert (code, err.count("\n")) == (1, 1)
        assert "a platform owns this job" in err


def test_a_mode_that_is_none_is_refused() -> None:
    code, _, err = call("adopt", KEY, "--mode", "hard", "--server", "http://127.0.0.1:1")
    assert code == 2
    assert "hard" in err


async def test_the_job_is_labelled_without_a_controller(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (c, path):
        for obj in unlabelled():
            await c.api.create(str(obj["kind"]), obj)
        await uid_of(c.api)
        code, out, _ = await command("adopt", KEY, "-o", "json", "--kubeconfig", path)
        assert (code, json.loads(out)["labels"]) == (0, {"fault-scheduling": "force"})
        stored = await c.api.get("AscendJob", P0, NAMESPACE)
        assert stored is not None
        assert stored["metadata"]["labels"]["fault-scheduling"] == "force"
