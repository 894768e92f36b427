"""kubectl reads: tables, documents, watches, descriptions, explanations."""

from __future__ import annotations

import asyncio
import json

import pytest
import yaml

from tests.sim.kubectl.conftest import Kubectl
from tests.sim.kubectl.manifests import CONFIG_MAP, EVERYTHING, NODE, POD

pytestmark = pytest.mark.kubectl


def columns(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


async def test_get_prints_tables(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=EVERYTHING)
    pods = columns(await kubectl("get", "pods"))
    assert pods[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert pods[1][:4] == ["web", "0/1", "Pending", "0"]
    wide = columns(await kubectl("get", "po", "-o", "wide"))
    assert wide[0][5:] == ["IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
    assert wide[1][6] == "node-1"
    assert columns(await kubectl("get", "acjob"))[0] == ["NAME", "STATE", "AGE"]
    everything = await kubectl("get", "nodes,configmaps,deployments,acjob", "-A")
    for name in (
        "node/node-1",
        "configmap/settings",
        "deployment.apps/proxy",
        "ascendjob.mindxdl.gitee.com/prefill-0",
    ):
        assert name in everything


async def test_get_prints_documents_and_selections(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=EVERYTHING)
    read = yaml.safe_load(await kubectl("get", "acjob", "prefill-0", "-o", "yaml"))
    assert read["spec"]["replicaSpecs"]["Master"]["replicas"] == 1
    listed = json.loads(await kubectl("get", "pods", "-l", "app=web", "-o", "json"))
    assert [item["kind"] for item in listed["items"]] == ["Pod"]
    assert await kubectl("get", "nodes", "-o", "name") == "node/node-1\n"
    assert await kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}") == "node-1"
    chosen = await kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=node-1", "-o", "name")
    assert chosen == "pod/web\n"
    assert 'pods "none" not found' in await kubectl.refused("get", "pod", "none")


async def test_get_watch_streams_rows(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE)
    watching = await kubectl.start("get", "nodes", "-w")
    assert watching.stdout is not None
    async with asyncio.timeout(10):
        assert (await watching.stdout.readline()).split()[0] == b"NAME"
        assert b"Unknown" in await watching.stdout.readline()
        await kubectl("cordon", "node-1")
        assert b"SchedulingDisabled" in await watching.stdout.readline()
    watching.terminate()
    await watching.communicate()


async def test_describe(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=EVERYTHING)
    node = await kubectl("describe", "node", "node-1")
    assert "accelerator=huawei-Ascend910" in node
    assert "mindie" in node.partition("Non-terminated Pods:")[2]
    pod = await kubectl("describe", "pod", "web")
    assert "cpu:     1" in pod
    assert "Node:" in pod
    job = await kubectl("describe", "acjob", "prefill-0")
    assert "huawei.com/Ascend910:  8" in job


async def test_explain(kubectl: Kubectl) -> None:
    image = await kubectl("explain", "pod.spec.containers.image")
    assert "Container image name." in image
    assert "<string>" in image
    assert "replicaSpecs" in await kubectl("explain", "ascendjob.spec")
    scheduling = await kubectl("explain", "acjob.spec.runPolicy.schedulingPolicy.minAvailable")
    assert "<integer>" in scheduling
    assert "Pods that must be placed together" in scheduling
    containers = await kubectl("explain", "acjob.spec.replicaSpecs.template.spec.containers")
    assert "List of containers belonging to the pod." in containers
    assert "minMember" in await kubectl("explain", "podgroup.spec")
    assert 'field "nothing" does not exist' in await kubectl.refused("explain", "pod.spec.nothing")


async def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    resources = columns(await kubectl("api-resources"))
    assert ["ascendjobs", "acjob", "mindxdl.gitee.com/v1", "true", "AscendJob"] in resources
    assert ["pods", "po", "v1", "true", "Pod"] in resources
    assert "mindxdl.gitee.com/v1" in (await kubectl("api-versions")).splitlines()
    assert "v1.32.0" in await kubectl("version")


async def test_wait(kubectl: Kubectl) -> None:
    held = CONFIG_MAP.replace("name: settings", "name: settings, finalizers: [example.com/hold]")
    await kubectl("apply", "-f", "-", stdin=POD + "---" + held)
    late = await kubectl.refused("wait", "--for=condition=Ready", "pod/web", "--timeout=1s")
    assert "timed out" in late
    await kubectl("delete", "cm", "settings", "--wait=false")
    waiting = await kubectl.start("wait", "--for=delete", "cm/settings", "--timeout=10s")
    free = {"metadata": {"finalizers": None}}
    await kubectl("patch", "cm", "settings", "--type=merge", "-p", json.dumps(free))
    out, err = await waiting.communicate()
    # Where the patch won the race, kubectl says that there was nothing to wait for.
    assert waiting.returncode == 0 or b"not found" in err or b"no matching" in err, out + err
