"""kubectl writes: apply in both ways, patches, labels, taints, typed commands, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sim.kubectl.conftest import Kubectl
from tests.sim.kubectl.manifests import CONFIG_MAP, DEPLOYMENT, EVERYTHING, JOB, NODE, POD

pytestmark = pytest.mark.kubectl

MANIFESTS = Path(__file__).resolve().parents[2] / "data" / "manifests"


async def test_client_side_apply_twice_changes_nothing(kubectl: Kubectl) -> None:
    first = await kubectl("apply", "-f", "-", stdin=EVERYTHING)
    assert [line.split()[-1] for line in first.splitlines()] == ["created"] * 5
    second = await kubectl("apply", "-f", "-", stdin=EVERYTHING)
    assert [line.split()[-1] for line in second.splitlines()] == ["unchanged"] * 5
    third = await kubectl("apply", "-f", "-", stdin=EVERYTHING.replace('a: "1"', 'b: "2"'))
    assert "configmap/settings configured" in third
    assert json.loads(await kubectl("get", "cm", "settings", "-o", "jsonpath={.data}")) == {"b": "2"}


async def test_server_side_apply_twice_changes_nothing(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    await kubectl(*apply, stdin=EVERYTHING)
    version = ("get", "cm,pods,acjob,deploy", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
    before = await kubectl(*version)
    second = await kubectl(*apply, stdin=EVERYTHING)
    assert second.count("serverside-applied") == 5
    assert await kubectl(*version) == before


async def test_server_side_apply_reports_whose_field_it_is(kubectl: Kubectl) -> None:
    await kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=CONFIG_MAP)
    other = ("apply", "--server-side", "--field-manager=two", "-f", "-")
    changed = CONFIG_MAP.replace('a: "1"', 'a: "2"')
    assert 'conflict with "one": .data.a' in await kubectl.refused(*other, stdin=changed)
    await kubectl(*other, "--force-conflicts", stdin=changed)
    assert await kubectl("get", "cm", "settings", "-o", "jsonpath={.data.a}") == "2"


async def test_dry_run_stores_nothing(kubectl: Kubectl) -> None:
    assert "(server dry run)" in await kubectl("apply", "--dry-run=server", "-f", "-", stdin=JOB)
    assert "not found" in await kubectl.refused("get", "acjob", "prefill-0")


async def test_three_kinds_of_patch(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT + "---" + JOB)
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    await kubectl("patch", "deploy", "proxy", "-p", json.dumps(strategic))
    names = "jsonpath={.spec.template.spec.containers[*].name}"
    assert set((await kubectl("get", "deploy", "proxy", "-o", names)).split()) == {"main", "side"}
    merge = {"spec": {"runPolicy": {"backoffLimit": 3, "schedulingPolicy": None}}}
    await kubectl("patch", "acjob", "prefill-0", "--type=merge", "-p", json.dumps(merge))
    policy = await kubectl("get", "acjob", "prefill-0", "-o", "jsonpath={.spec.runPolicy}")
    assert json.loads(policy) == {"backoffLimit": 3}
    operations = [
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "remove", "path": "/spec/replicas"},
    ]
    await kubectl("patch", "deploy", "proxy", "--type=json", "-p", json.dumps(operations))
    assert "application/merge-patch+json" in await kubectl.refused("patch", "acjob", "prefill-0", "-p", "{}")


async def test_node_commands(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE)
    await kubectl("label", "node", "node-1", "x=y")
    await kubectl("label", "node", "node-1", "x=z", "--overwrite")
    await kubectl("taint", "node", "node-1", "fault=chip:NoSchedule")
    await kubectl("annotate", "node", "node-1", 'sim.mindie-ha.io/faults=[{"device": "Ascend910-3"}]')
    await kubectl("cordon", "node-1")
    node = json.loads(await kubectl("get", "node", "node-1", "-o", "json"))
    assert node["metadata"]["labels"]["x"] == "z"
    assert node["metadata"]["annotations"]["sim.mindie-ha.io/faults"] == '[{"device": "Ascend910-3"}]'
    assert {"key": "fault", "value": "chip", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["spec"]["unschedulable"] is True
    await kubectl("uncordon", "node-1")
    await kubectl("taint", "node", "node-1", "fault-")
    await kubectl("label", "node", "node-1", "x-")
    node = json.loads(await kubectl("get", "node", "node-1", "-o", "json"))
    assert "x" not in node["metadata"]["labels"]
    assert not node["spec"].get("taints")
    assert not node["spec"].get("unschedulable")


async def test_delete(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=CONFIG_MAP + "---" + JOB + "---" + POD)
    assert 'configmap "settings" deleted' in await kubectl("delete", "cm", "settings")
    assert 'ascendjob.mindxdl.gitee.com "prefill-0" deleted' in await kubectl("delete", "-f", "-", stdin=JOB)
    await kubectl("delete", "pod", "-l", "app=web", "--grace-period=0", "--force")
    assert "not found" in await kubectl.refused("delete", "pod", "web")
    assert await kubectl("get", "pods,cm,acjob", "-o", "name") == ""


async def test_typed_commands(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "other")
    await kubectl("create", "configmap", "c", "--from-literal=a=b", "-n", "other")
    assert await kubectl("get", "cm", "c", "-n", "other", "-o", "jsonpath={.data.a}") == "b"
    await kubectl("create", "deployment", "d", "--image=x:1", "-n", "other")
    assert "created" in await kubectl("run", "one", "--image=x:1", "-n", "other")
    assert (await kubectl("auth", "can-i", "delete", "pods")).strip() == "yes"
    await kubectl("delete", "namespace", "other", "--timeout=10s")
    assert "not found" in await kubectl.refused("get", "namespace", "other")


async def test_drain_evicts_pods(kubectl: Kubectl) -> None:
    await kubectl(
        "apply",
        "-f",
        "-",
        stdin=NODE + "---" + POD.replace("nodeName", "terminationGracePeriodSeconds: 0\n  nodeName"),
    )
    await kubectl("drain", "node-1", "--force", "--grace-period=0", "--timeout=10s")
    assert "not found" in await kubectl.refused("get", "pod", "web")


@pytest.mark.parametrize("role", ["controller", "coordinator", "server"])
async def test_published_manifest_is_accepted_once_filled_in(kubectl: Kubectl, role: str) -> None:
    text = (MANIFESTS / f"motor_acjob_{role}_init.yaml").read_text(encoding="utf-8")
    filled = text.replace("xxxx", "mindie-ms").replace("deploy-server: 1", 'deploy-server: "1"')
    filled = filled.replace("minAvailable: x", "minAvailable: 1")
    created = await kubectl("apply", "-f", "-", stdin=filled)
    assert "ascendjob.mindxdl.gitee.com/mindie-ms-" in created
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=filled)


async def test_published_server_manifest_is_refused_as_it_is(kubectl: Kubectl) -> None:
    text = (MANIFESTS / "motor_acjob_server_init.yaml").read_text(encoding="utf-8")
    problem = await kubectl.refused("apply", "-f", "-", stdin=text)
    assert "deploy-server" in problem or "metadata.labels of type string" in problem
    quoted = text.replace("deploy-server: 1", 'deploy-server: "1"')
    problem = await kubectl.refused("apply", "-f", "-", stdin=quoted)
    assert "spec.runPolicy.schedulingPolicy.minAvailable" in problem
    assert "integer" in problem


async def test_mistakes_are_named(kubectl: Kubectl) -> None:
    misspelt = POD.replace("nodeName", "nodeNmae")
    assert 'unknown field "' in await kubectl.refused("apply", "-f", "-", stdin=misspelt)
    bad_name = POD.replace("name: web", "name: We_b")
    assert "RFC 1123" in await kubectl.refused("apply", "-f", "-", stdin=bad_name)
    no_image = POD.replace("image: mindie:1", "imagePullPolicy: Always")
    assert "spec.containers[0].image: Required value" in await kubectl.refused(
        "apply", "-f", "-", stdin=no_image
    )
