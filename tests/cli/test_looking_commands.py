"""`status`, `ranktable show|diff` and `version`: what they print and how they exit."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from mindie_ha import __version__
from mindie_ha.cli.main import main
from mindie_ha.cli.output import Format, print_document
from mindie_ha.cli.status import fault_words, headline, table_remarks
from tests.engine.clusters import CHIP, NAMESPACE, Cluster, cluster, listening

P0, D0 = "mindie-server-p0", "mindie-server-d0"


def call(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["mindie-ha", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = before
    code = ended.value.code
    assert isinstance(code, int)
    return code, out.getvalue(), err.getvalue()


async def ask(c: Cluster, *arguments: str) -> tuple[int, str, str]:
    """The same, asking a running controller."""
    return await asyncio.to_thread(call, *arguments, "--server", f"http://127.0.0.1:{c.app.http_port}")


def test_version() -> None:
    assert call("version") == (0, f"mindie-ha {__version__}\n", "")
    assert call("--version") == call("version")
    code, out, _ = call("version", "-o", "json")
    assert (code, json.loads(out)["version"]) == (0, __version__)


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(("status", "--server", "nonsense"), 2, "not an http:// or https:// URL", id="url"),
        pytest.param(("status", "--server", "http://127.0.0.1:1"), 1, "does not answer", id="nobody"),
        pytest.param(
            ("status", "--server", "http://h", "--kubeconfig", "f"), 2, "give one of", id="two-sources"
        ),
        pytest.param(("ranktable", "show", "nowhere"), 2, "neither a file nor NAMESPACE/JOBID", id="name"),
        pytest.param(("status", "-o", "xml"), 2, "xml", id="format"),
        pytest.param(("frobnicate",), 2, "No such command", id="command"),
        pytest.param(
            ("status", "--kubeconfig", "/nowhere"), 2, "/nowhere: is not usable: No such", id="file"
        ),
        pytest.param(("status",), 2, "give --server URL", id="no-source"),
        pytest.param(("run",), 2, "give --kubeconfig FILE", id="no-cluster"),
        pytest.param(("run", "--kubeconfig", "f", "--log-level", "loud"), 2, "'loud'", id="level"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(
    arguments: tuple[str, ...], code: int, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    ended, out, err = call(*arguments)
    assert (ended, out) == (code, "")
    assert complaint in err
    assert err.count("\n") == 1


async def test_status_tells_how_everything_is_and_what_cannot_be_understood() -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        code, out, err = await ask(c, "status")
        assert (code, err) == (0, "")
        assert "service mindie/mindie-ms: ok" in out
        assert all(name in out for name in (P0, D0, "mindie-ms-controller", "table: generation 1"))
        data = {"data": {"hccl.json": "{"}}
        await c.api.patch("ConfigMap", f"rings-config-{P0}", NAMESPACE, data)
        await c.until(lambda: c.events("InputRefused"), "seen")
        code, out, _ = await ask(c, "status")
        assert f"not understood: ConfigMap mindie/rings-config-{P0}" in out
        assert f"left out of the table: {P0}" in out
        code, out, _ = await ask(c, "status", "-o", "json")
        found = json.loads(out)
        assert [one["object"] for one in found["problems"]] == [f"ConfigMap mindie/rings-config-{P0}"]
        await c.fail_job(D0)
        await c.until(lambda: c.state(D0) == "parked", "parked")
        code, out, _ = await ask(c, "status")
        assert code == 1
        assert "OwnerGaveUp" in out


async def test_ranktable_show_and_diff_read_services_and_files(tmp_path: Path) -> None:
    async with cluster(settings=listening(), speed=20.0, serve=True) as c:
        code, out, err = await ask(c, "ranktable", "show", "mindie/mindie-ms")
        assert (code, err) == (0, "")
        assert all(ip in out for ip in c.published_ips())
        assert all(word in out for word in ("coordinator", "controller", "server"))
        code, out, _ = await ask(c, "ranktable", "show", "mindie/mindie-ms", "-o", "json")
        assert json.loads(out)["table"] == json.loads(c.table()["text"])
        before = tmp_path / "before.json"
        before.write_text(c.table()["text"])
        code, out, _ = await ask(c, "ranktable", "diff", str(before), "mindie/mindie-ms")
        assert (code, out) == (0, "no difference\n")
        _, out, _ = await ask(c, "ranktable", "show", "mindie/mindie-ms", "-o", "json")
        shown = tmp_path / "shown.json"
        shown.write_text(out)
        assert call("ranktable", "diff", str(before), str(shown)) == (0, "no difference\n", "")
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: c.published() == {D0}, "withdrawn")
        code, out, _ = await ask(c, "ranktable", "diff", str(before), "mindie/mindie-ms")
        assert code == 1
        assert out.startswith("- group ")
        code, out, err = await ask(c, "ranktable", "show", "mindie/nobody")
        assert (code, out) == (1, "")
        assert "no table was published for mindie/nobody" in err


def test_the_kubeconfig_of_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    for command in ("status", "run"):
        code, _, err = call(command)
        assert (code, "kubeconfig /nowhere: is not usable: No such" in err) == (2, True), err
    (tmp_path / "a").write_text("nonsense: [")
    monkeypatch.setenv("KUBECONFIG", f"/nowhere{os.pathsep}{tmp_path / 'a'}")
    code, _, err = call("status")
    assert (code, f"kubeconfig {tmp_path / 'a'}: is not usable" in err) == (2, True), err
    (tmp_path / "b").write_text("{}")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'a'}{os.pathsep}{tmp_path / 'b'}")
    code, _, err = call("status")
    assert (code, "KUBECONFIG: names several files" in err) == (2, True), err


@pytest.mark.parametrize("text", ["not JSON", "[]", '{"a": 1}'])
def test_texts_that_are_no_tables_are_never_called_equal(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    code, out, err = call("ranktable", "diff", str(path), str(path))
    assert (code, out) == (2, "")
    assert "bad.json: is not a rank table" in err
    assert err.count("\n") == 1


def test_a_fault_code_that_looks_like_a_number_stays_a_text_in_yaml(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_document({"code": "80E18005"}, Format.YAML)
    assert capsys.readouterr().out == "code: '80E18005'\n"


def test_only_a_running_controller_says_who_has_the_table() -> None:
    table = {"generation": 3, "servers": 8, "digest": "0" * 64, "published_at_s": 0.0}
    rest = {"left_out": {}, "held_until_s": {}, "notices": []}
    (line,) = table_remarks({**table, **rest, "subscribers": None, "handed_to_all": None})
    assert "subscribers" not in line
    assert "handed" not in line
    (line,) = table_remarks({**table, **rest, "subscribers": 2, "handed_to_all": True})
    assert line.endswith("subscribers by gRPC: 2, handed to all")
    strange = {"subscribers": 2, "handed_to_all": True, "strangers": ["192.0.2.7"]}
    (line,) = table_remarks({**table, **rest, **strange})
    (nobody,) = table_remarks({**table, **rest, "subscribers": 0, "handed_to_all": True})
    assert nobody.endswith(" old, nobody subscribed by gRPC")
    assert line.endswith("subscribers by gRPC: 2 (192.0.2.7: no pod or node of it), handed to all")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param({"role": "leader", "leader": "a", "as_of_s": None}, "", id="well"),
        pytest.param({"leader": ""}, "", id="nobody-was-asked"),
        pytest.param(
            {"role": "standby", "leader": "", "as_of_s": None}, "nobody leads: nothing is done", id="nobody"
        ),
        pytest.param(
            {"role": "standby", "leader": "", "as_of_s": 0.0},
            r"the API server does not answer \(data as of \d\d:\d\d:\d\d\); nobody leads: nothing is done",
            id="away",
        ),
    ],
)
def test_what_must_be_known_first_is_said_first(found: dict[str, Any], words: str) -> None:
    assert re.fullmatch(words, headline(found))


def test_a_fault_is_told_with_its_place_and_its_source() -> None:
    evidence = "ConfigMap mindx-dl-deviceinfo-node-2, UpdateTime 1"
    card = {"cause": "ChipUnhealthy", "device": "Ascend910-3", "node": "node-2", "codes": ["80E18005"]}
    assert fault_words({**card, "level": "SeparateNPU", "pod": "p0-0", "evidence": evidence}) == (
        f"ChipUnhealthy Ascend910-3 on node-2 (80E18005, SeparateNPU) under pod p0-0; {evidence}"
    )
    node = {"cause": "NodeNotReady", "device": "", "node": "node-2", "codes": [], "level": "", "pod": ""}
    assert fault_words({**node, "evidence": "Ready is False"}) == "NodeNotReady node-2; Ready is False"


def test_a_table_that_would_be_refused_is_shown_and_exits_1(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"version": "1.0", "status": "completed", "server_group_list": []}')
    code, out, _ = call("ranktable", "show", str(path))
    assert code == 1
    assert "reject" in out
