"""`mindie-ha demo` and `mindie-ha sim` as scripts see them: exit codes, one-line errors, what goes where."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from mindie_ha.cli.main import main

RUN = "from mindie_ha.cli.main import main; main()"
pytestmark = pytest.mark.timeout(60)


def mindie_ha(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=50, check=False
    )


BAD_USAGE = {
    "unknown scenario": (
        ("demo", "--scenario", "prefil-chip-fault"),
        "did you mean prefill-chip-fault? see mindie-ha",
    ),
    "no such file": (("demo", "--scenario", "./none.yaml"), "none.yaml: cannot be read"),
    "speed of nothing": (("demo", "--speed", "0"), "--speed 0: must be above 0"),
    "speed of no number": (("demo", "--speed", "x"), "--speed"),
    "no address": (("demo", "--serve", "8080"), "not HOST:PORT"),
    "neither socket nor actors": (("sim", "--kubeconfig", "k"), "--listen"),
    "socket and actors": (("sim", "--kubeconfig", "k", "--listen", "a:1", "--actors-only"), "--listen"),
    "no nodes": (("sim", "--kubeconfig", "k", "--listen", "127.0.0.1:0", "--nodes", "0"), "--nodes 0"),
    "no kubeconfig": (("sim", "--kubeconfig", "./none/k", "--actors-only"), "none/k"),
    "no manifest": (
        ("sim", "--kubeconfig", "k", "--listen", "127.0.0.1:0", "--manifest", "./none.yaml"),
        "none.yaml: cannot be read",
    ),
}


def called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[object, str, str]:
    """Exit code, stdout and stderr of the command line, called in this process."""
    monkeypatch.setattr(sys, "argv", ["mindie-ha", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return ended.value.code, out, err


@pytest.mark.parametrize(("arguments", "said"), BAD_USAGE.values(), ids=BAD_USAGE.keys())
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = called(monkeypatch, capsys, *arguments)

    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_manifest_that_the_api_server_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "bad.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: mindie}\n")
    arguments = ("sim", "--kubeconfig", str(tmp_path / "k"), "--listen", "127.0.0.1:0", "--nodes", "2")
    code, out, err = called(monkeypatch, capsys, *arguments, "--manifest", str(manifest))

    assert (code, out) == (2, "")
    assert "ConfigMap Not_A_Name" in err
    assert err.count("\n") == 1


def test_the_list_names_every_scenario() -> None:
    ended = mindie_ha("demo", "--list", "--output", "json")

    assert ended.returncode == 0
    assert "prefill-chip-fault" in {each["name"] for each in json.loads(ended.stdout)["scenarios"]}


def test_json_is_alone_on_stdout_and_the_story_on_stderr() -> None:
    ended = mindie_ha("demo", "--scenario", "last-instance-lost", "--output", "json", "--speed", "40")

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["ok"] is True
    assert "OK: 1 recovery" in ended.stderr


def test_an_expectation_that_fails_is_exit_code_1(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "{name: mine, title: Nothing breaks, about: nothing, manifest: single-server, cluster: {nodes: 3},\n"
        " steps: [{wait_s: 1}], limit_s: 5, expect: {recoveries: [{workload: mindie/mindie-server-0}]}}\n"
    )
    ended = mindie_ha("demo", "--scenario", str(scenario), "--speed", "40")

    assert ended.returncode == 1, ended.stderr
    assert "mindie/mindie-server-0: no recovery was seen" in ended.stdout
    assert "NOT OK" in ended.stdout


def test_sim_writes_its_kubeconfig_says_what_to_do_and_ends_on_sigterm(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    arguments = ("sim", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0", "--nodes", "2")
    with subprocess.Popen(
        [sys.executable, "-u", "-c", RUN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGTERM)
        began_s = time.monotonic()
        rest, errors = process.communicate(timeout=20)

    assert "2 a2 servers run at http://127.0.0.1:" in told[0]
    assert f"kubectl --kubeconfig {kubeconfig}" in told[1]
    assert rest == ""
    assert kubeconfig.exists()
    assert (process.returncode, errors) == (0, "")
    assert time.monotonic() - began_s < 10


async def test_serve_goes_on_after_the_story_until_it_is_told_to_stop() -> None:
    arguments = ("demo", "--scenario", "last-instance-lost", "--speed", "60", "--serve", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", "-c", RUN, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async for line in process.stdout:
        if b"HTTP API: " in line:
            url = line.decode().partition("HTTP API: ")[2].split()[0]
            break
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        services = await answer.json()
    process.send_signal(signal.SIGINT)

    assert [each["state"] for each in services["services"]] == ["ok"]
    assert await asyncio.wait_for(process.wait(), 15) == 0


def test_an_address_in_use_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = called(monkeypatch, capsys, "demo", "--serve", address)

    assert (code, out) == (2, "")
    assert f"--serve {address}: cannot listen" in err
