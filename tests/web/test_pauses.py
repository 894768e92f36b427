"""`pause` and `resume` by the API, by the commands with a server, and with a kubeconfig alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.test_isolations_without_a_server import command, simulated
from tests.cli.test_looking_commands import ask, call
from tests.engine.clusters import NAMESPACE, cluster, listening
from tests.web.test_http_api import error_of, live

SERVICE = f"{NAMESPACE}/mindie-ms"


async def test_a_person_pauses_and_resumes_by_the_api() -> None:
    async with live() as (_, session):
        asked = {"scope": f"service/{SERVICE}", "reason": "switch work", "person": "ann", "for_s": 3600}
        async with session.post("/v1/pauses", json=asked) as answer:
            found = await answer.json()
            assert (answer.status, found["changed"]) == (201, True)
        assert found["pause"]["undo"] == f"mindie-ha resume --service {SERVICE}"
        async with session.get("/v1/pauses") as answer:
            shown = await answer.json()
            assert (shown["error"], shown["pauses"]) == ("", [found["pause"]])
        async with session.delete(f"/v1/pauses/service/{SERVICE}", params={"person": "bob"}) as answer:
            assert (answer.status, (await answer.json())["changed"]) == (200, True)
        async with session.delete(f"/v1/pauses/service/{SERVICE}") as answer:
            assert (answer.status, (await answer.json())["changed"]) == (200, False)
        async with session.get("/v1/pauses") as answer:
            assert (await answer.json())["pauses"] == []


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        pytest.param({"scope": "cluster"}, 400, "a reason is needed", id="no-reason"),
        pytest.param({"scope": "cluster", "reason": "\ud800"}, 400, "half of a character", id="half"),
        pytest.param({"scope": "cluster", "reason": "a\u202eb"}, 400, "cannot be printed", id="turned-round"),
        pytest.param({"scope": "cluster", "reason": "\x9b31m"}, 400, "cannot be printed", id="escape"),
        pytest.param({"scope": "cluster", "reason": "a\nb"}, 400, "cannot be printed", id="lines"),
        pytest.param({"scope": "cluster", "reason": "x" * 201}, 400, "too many", id="long"),
        pytest.param({"scope": "all", "reason": "x"}, 400, "is no scope", id="scope"),
        pytest.param({"reason": "x"}, 400, "is no scope", id="no-scope"),
        pytest.param({"scope": "cluster", "reason": "x", "for_s": 0}, 400, "out of range", id="for"),
        pytest.param({"scope": "cluster", "reason": "x", "for": 9}, 400, "unknown field", id="field"),
        pytest.param({"scope": "service/a/b", "reason": "x"}, 404, "no service or job a/b", id="service"),
    ],
)
async def test_what_cannot_be_done_is_explained(body: object, status: int, what: str) -> None:
    async with live() as (_, session), session.post("/v1/pauses", json=body) as answer:
        assert answer.status == status
        assert what in (await error_of(answer))["what"]


async def test_the_commands_pause_and_resume_by_the_server() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        code, out, err = await ask(c, "pause", "--cluster", "--reason", "work", "--for", "2h")
        assert (code, err) == (0, "")
        assert out == "cluster is paused, for 2h: work\ntake it back with: mindie-ha resume --cluster\n"
        code, out, _ = await ask(c, "pause", "--cluster", "--reason", "longer")
        assert (code, out.splitlines()[0]) == (0, "cluster is paused, until it is resumed: longer")
        assert re.fullmatch(r"replaces the pause by \S+, for \d+ s more: work", out.splitlines()[1])
        await ask(c, "pause", "--cluster", "--reason", "work")
        code, out, _ = await ask(c, "pause", "--service", SERVICE, "--reason", "more")
        assert (code, out.splitlines()[0]) == (
            0,
            f"service/{SERVICE} is paused, until it is resumed: more",
        )
        _, out, _ = await ask(c, "status")
        assert f"paused: service/{SERVICE}: more (by " in out
        code, out, _ = await ask(c, "resume", "--service", SERVICE)
        assert (code, out.splitlines()) == (
            0,
            [f"service/{SERVICE} is resumed", "still paused: cluster: work (mindie-ha resume --cluster)"],
        )
        code, out, _ = await ask(c, "resume", "--namespace", NAMESPACE, "-o", "json")
        assert (code, json.loads(out)["changed"]) == (0, False)


@pytest.mark.parametrize("scope", [(), ("--cluster", "--namespace", "x"), ("--service", "x")])
@pytest.mark.parametrize("verb", [("pause", "--reason", "x"), ("resume",)], ids=["pause", "resume"])
def test_exactly_one_scope_is_named(verb: tuple[str, ...], scope: tuple[str, ...]) -> None:
    code, _, err = call(*verb, *scope, "--server", "http://127.0.0.1:1")
    assert code == 2
    assert "give one of" in err or "is no scope" in err


async def test_the_record_is_written_without_a_controller(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (c, path):
        at = ("--kubeconfig", path)
        code, out, _ = await command("pause", "--namespace", "x", "--reason", "work", *at)
        assert (code, out.splitlines()[0]) == (0, "namespace/x is paused, until it is resumed: work")
        assert "no service or job is in namespace x now" in out.splitlines()[1]
        stored = await c.api.get("ConfigMap", "mindie-ha-pauses", "mindx-dl")
        assert stored is not None
        assert [one["scope"] for one in json.loads(stored["data"]["ledger.json"])["pauses"]] == [
            "namespace/x"
        ]
        code, out, _ = await command("pause", "--namespace", "x", "--reason", "work", *at)
        assert (code, out.splitlines()[0]) == (0, "namespace/x was paused already, until it is resumed: work")
        code, out, _ = await command("resume", "--namespace", "x", *at)
        assert (code, out) == (0, "namespace/x is resumed\n")
        code, out, _ = await command("resume", "--namespace", "x", *at)
        assert (code, out) == (0, "namespace/x is not paused; nothing was changed\n")
