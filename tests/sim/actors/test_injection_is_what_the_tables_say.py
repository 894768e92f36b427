"""The embedded operator, which imports nothing of ours, injects exactly what our tables list."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from mindie_ha.policy.parameters import injected
from mindie_ha.policy.parameters.modes import STRATEGIES, Framework
from mindie_ha.sim.actors.ascendjobs import JobSpec, read_job
from mindie_ha.sim.actors.job_envs import Addresses
from mindie_ha.sim.actors.job_envs import injected as by_the_operator

ADDRESSES = Addresses(server="127.0.0.1", leader="10.0.0.9")
BASES = {
    Framework.PYTORCH: "clean_pytorch_process",
    Framework.MINDSPORE: "clean_mindspore_process",
    Framework.TENSORFLOW: "clean_tensorflow_job",
}
RECOVER_STRATEGIES = (
    *("", "restart", "recover, retry", " recover", "recover,", ","),
    *(",".join(chosen) for size in (1, 2) for chosen in combinations(STRATEGIES, size)),
    ",".join(STRATEGIES),
    "dump,dump,unknown",
)
RECOVERY = {
    name
    for row in injected.INJECTIONS.values()
    for name in (*row.switches, injected.HIGH_AVAILABILITY, injected.MS_ENABLE_TFT)
} | {name for row in injected.WATCHDOG_OFF.values() for name in row}


def job(framework: Framework, *, strategy: str, pod_level: bool, hot_switch: bool) -> JobSpec:
    body: dict[str, Any] = yaml.safe_load(Path(f"tests/data/jobs/{BASES[framework]}.yaml").read_text())
    labels = body["metadata"]["labels"]
    labels.pop("pod-rescheduling", None)
    if pod_level:
        labels["pod-rescheduling"] = "on"
    if hot_switch:
        labels["subHealthyStrategy"] = "hotSwitch"
    body["metadata"]["annotations"] = {"recover-strategy": strategy} if strategy else {}
    body["metadata"]["annotations"]["sp-block"] = "16"
    return read_job(body)


def environment(spec: JobSpec, role: int) -> list[tuple[str, str | None]]:
    return [
        (entry["name"], entry.get("value")) for entry in by_the_operator(spec, spec.roles[role], 0, ADDRESSES)
    ]


@pytest.mark.parametrize("hot_switch", [False, True], ids=["", "hot-switch"])
@pytest.mark.parametrize("pod_level", [False, True], ids=["", "pod-level"])
@pytest.mark.parametrize("framework", list(Framework), ids=str)
def test_recovery_variables(framework: Framework, *, pod_level: bool, hot_switch: bool) -> None:
    for strategy in RECOVER_STRATEGIES:
        spec = job(framework, strategy=strategy, pod_level=pod_level, hot_switch=hot_switch)
        wanted = injected.recovery_environment(
            framework, recover_strategy=strategy, pod_level=pod_level, hot_switch=hot_switch
        )
        for role in range(len(spec.roles)):
            found = [pair for pair in environment(spec, role) if pair[0] in RECOVERY]
            assert dict(found) == wanted, strategy
            assert len(found) == len(wanted), strategy


@pytest.mark.parametrize("framework", list(Framework), ids=str)
def test_all_other_variables_are_listed_too(framework: Framework) -> None:
    spec = job(framework, strategy="recover", pod_level=False, hot_switch=False)
    listed = set(injected.names(framework, inference=False))
    for role in range(len(spec.roles)):
        assert {name for name, _ in environment(spec, role)} - RECOVERY == listed


def test_the_inference_set() -> None:
    documents = yaml.safe_load_all(Path("tests/data/jobs/clean_mindie_server.yaml").read_text())
    spec = read_job(next(body for body in documents if body["kind"] == "AscendJob"))
    assert [name for name, _ in environment(spec, 0)] == list(injected.names(None, inference=True))


def test_exit_is_injected_like_recover_whatever_the_documents_say() -> None:
    for framework in (Framework.PYTORCH, Framework.MINDSPORE):
        both = [injected.recovery_environment(framework, recover_strategy=one) for one in ("exit", "recover")]
        assert both[0] == both[1]
