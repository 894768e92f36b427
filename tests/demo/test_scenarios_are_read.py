"""Scenario files: ours are whole, a user's file works, and every mistake is one helpful line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mindie_ha.demo import scenarios
from mindie_ha.demo.observations import jobs_in
from mindie_ha.demo.steps import WaitUntil
from mindie_ha.model.errors import InputError
from mindie_ha.model.settings import Settings

REQUIRED = {
    "prefill-chip-fault",
    "prefill-node-notready",
    "decode-pod-failed",
    "a3-superpod-chip-fault",
    "p-and-d-lost-together",
    "last-instance-lost",
    "seed-server-chip-fault",
    "node-notready",
    "node-deleted",
    "public-fault-npu",
    "switch-fault-a3",
    "silenced-restart-request",
    "silenced-then-acts",
    "flapping-node",
    "half-the-fleet-lost",
    "software-fault-two-cards",
    "fault-while-pending",
    "chip-heals-and-is-released",
    "person-uncordons",
    "coordinator-active-node-lost",
    "coordinator-standby-node-lost",
    "controller-active-node-lost",
    "only-decode-lost",
    "coupled-restart",
    "ms-both-nodes-lost",
    "ms-pod-rung-fails",
    "ms-pod-pending-no-capacity",
    "training-job-level",
    "training-pod-level",
    "training-pod-level-falls-back",
    "training-rank0-fault",
    "training-grace-checkpoint",
    "training-software-fault-budget-spent",
    "training-graceful-chip-reset",
    "training-link-fault-op-retry",
    "superpod-block",
    "vcjob-job-level",
    "training-and-inference-share-a-node",
    "inferserviceset-instance",
    "inferserviceset-operator-off",
}
MINIMAL: dict[str, Any] = {
    "name": "mine",
    "title": "Mine",
    "about": "A test.",
    "manifest": "pd-a2",
    "steps": [{"wait_s": 1}],
    "expect": {"recoveries": []},
}


def written(folder: Path, content: dict[str, Any] | str) -> str:
    path = folder / "mine.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_the_scenarios_we_promise_are_there_and_the_default_comes_first() -> None:
    assert set(scenarios.names()) >= REQUIRED
    assert scenarios.names()[0] == "prefill-chip-fault"


@pytest.mark.parametrize("name", scenarios.names())
def test_a_shipped_scenario_speaks_of_what_its_manifest_has(name: str) -> None:
    scenario = scenarios.load(name)
    jobs = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in jobs_in(scenario.objects())
    }
    wanted = {each.workload for each in scenario.expect.recoveries} | set(scenario.expect.retries_spent)

    pods = {pod for pod in named_pods(scenario) if not {pod.rsplit("-", 2)[0], pod.rsplit("-", 1)[0]} & jobs}

    Settings.model_validate(scenario.settings)
    assert scenario.name == name
    assert wanted or scenario.expect.nothing_deleted
    assert wanted | set(scenario.expect.states) <= jobs
    assert not pods


def named_pods(scenario: scenarios.Scenario) -> Iterator[str]:
    """Every pod that a step or an expectation names."""
    parts = [scenario.model_dump(include={"steps", "expect"}, exclude_none=True)]
    while parts:
        part = parts.pop()
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
        if isinstance(part, dict):
            yield from (part[key] for key in ("under", "was_under", "pod") if key in part)


def test_a_file_of_a_user_may_bring_its_own_manifest(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    scenario = scenarios.load(written(tmp_path, {**MINIMAL, "manifest": "one.yaml"}))

    assert [each["metadata"]["name"] for each in scenario.objects()] == ["a"]


def test_the_example_of_the_documentation_can_be_played(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    scenario = scenarios.load(written(tmp_path, example))

    assert scenario.objects()
    assert [step for step in type(scenario.steps[0]).model_fields if f"`{step}:" not in page] == []
    assert [each for each in WaitUntil.model_fields if each not in page] == []
    assert [each for each in type(scenario.expect).model_fields if f"`{each}" not in page] == ["status_said"]


MISTAKES = {
    "an unknown key": ({**MINIMAL, "limits_s": 5}, "limits_s: no such key (did you mean limit_s?)"),
    "an unknown key inside": (
        {**MINIMAL, "cluster": {"node": 3}},
        "cluster.node: no such key (did you mean nodes?)",
    ),
    "an unknown step": (
        {**MINIMAL, "steps": [{"chipp": {}}]},
        "steps.0.chipp: no such key (did you mean chip?)",
    ),
    "two things in a step": (
        {**MINIMAL, "steps": [{"wait_s": 1, "heal": "all"}]},
        "steps.0: a step does one thing, one of chip, switch, board, public_fault, public_fault_over, ",
    ),
    "a key of another step": (
        {**MINIMAL, "steps": [{"flap": {"under": "a/b", "time": 3}}]},
        "steps.0.flap.time: no such key (did you mean times?)",
    ),
    "two things to wait for": (
        {**MINIMAL, "steps": [{"wait_until": {"status_says": "x", "recovered": "a/b"}}]},
        "steps.0.wait_until: wait_until waits for one thing, one of status_says, event, tainted, released,",
    ),
    "a public fault whose id nobody takes": (
        {**MINIMAL, "steps": [{"public_fault": {"id": "short", "under": "a/b"}}]},
        "steps.0.public_fault.id: ",
    ),
    "a story of a taint that nobody tells": (
        {**MINIMAL, "expect": {"recoveries": [], "taints": [{"was_under": "a/b", "story": "gone"}]}},
        "expect.taints.0.story: ",
    ),
    "no steps": ({**MINIMAL, "steps": []}, "steps: "),
    "a name without namespace": (
        {**MINIMAL, "expect": {"recoveries": [{"workload": "p0"}]}},
        "expect.recoveries.0.workload: ",
    ),
    "an outcome nobody knows": (
        {**MINIMAL, "expect": {"recoveries": [{"workload": "a/b", "outcome": "fine"}]}},
        "expect.recoveries.0.outcome: ",
    ),
    "no YAML": ("a: [", "is not YAML: "),
    "no mapping": ("- a", "every document must be a mapping"),
    "nothing": ("", "must be one YAML mapping"),
    "bad bytes of a name": ({**MINIMAL, "name": "My Scenario"}, "name: "),
}


@pytest.mark.parametrize(("content", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_that_says_where(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        scenarios.load(written(tmp_path, content))

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean prefill-chip-fault"):
        scenarios.load("prefil-chip-fault")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"manifest": "pd-a4"}, "no such manifest"),
        ({"leave_out": ["nobody"]}, "leave_out names nobody"),
        ({"changes": {"nobody": {}}}, "changes names nobody"),
    ],
    ids=["manifest", "leave_out", "changes"],
)
def test_objects_that_are_not_there_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    scenario = scenarios.load(written(tmp_path, {**MINIMAL, **change}))

    with pytest.raises(InputError, match=said):
        scenario.objects()


def test_changes_are_merged_into_their_object_alone(tmp_path: Path) -> None:
    name = "mindie-ms-coordinator"
    change = {"changes": {name: {"metadata": {"labels": {"pod-rescheduling": "on"}}, "spec": {"more": [1]}}}}
    before, after = (
        {each["metadata"]["name"]: each for each in scenarios.load(written(tmp_path, one)).objects()}
        for one in (MINIMAL, {**MINIMAL, **change})
    )

    assert {key for key in before if before[key] != after[key]} == {name}
    assert after[name]["metadata"]["labels"] == {
        **before[name]["metadata"]["labels"],
        "pod-rescheduling": "on",
    }
    assert after[name]["spec"] == {**before[name]["spec"], "more": [1]}


BROKEN_MANIFESTS = {
    "no kind": ("metadata: {name: a}\n", "document 1: has no kind or apiVersion"),
    "no name": ("apiVersion: v1\nkind: Pod\n", "document 1: has no metadata.name"),
    "no YAML": ("{", "is not YAML"),
}


@pytest.mark.parametrize(("text", "said"), BROKEN_MANIFESTS.values(), ids=BROKEN_MANIFESTS.keys())
def test_a_broken_manifest_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "manifest.yaml"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        scenarios.read_objects(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_as_kubectl_prints_it_is_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    other = {**item, "metadata": {"name": "b"}}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [item, other]}))
    assert [each["metadata"]["name"] for each in scenarios.read_objects(path)] == ["a", "b"]
