"""The field around a real control plane: simulated machines and one MindIE service, and mindie-ha deployed.

The manifests of `manifests/` are applied as they are: the real controllers make the pods of the Deployment,
the simulated kubelets run them. What a container would do is a `mindie-ha run` process on the pod's address,
logged in with the token of the manifests' own service account (`controllers.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.real.blocks import claimed_seed, first_address
from tools.control_plane import binaries
from tools.control_plane.objects import RefusedError, install_kinds, request
from tools.control_plane.planes import ControlPlane

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
SERVICE = ROOT / "mindie_ha" / "demo" / "manifests" / "pd-ha.yaml"
PROGRAM = ("setpriv", "--pdeathsig", "KILL", sys.executable, "-u", "-c")
MAIN = "from mindie_ha.cli.main import main; main()"
WITHIN_S = 300.0
NAMESPACE = "mindx-dl"
ORDER = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Service")
PATHS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "NetworkPolicy": f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
    "PodDisruptionBudget": f"/apis/policy/v1beta1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
}
Body = dict[str, Any]


def environment() -> dict[str, str]:
    """Of a program of ours: compiled once and kept, for it is started some eighty times."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(binaries.cache_home() / "bytecode")}


@contextmanager
def started(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Start it, with our kinds; stop it with the context."""
    plane.start()
    try:
        install_kinds(plane)
        yield plane
    finally:
        plane.stop()


@contextmanager
def furnished(
    plane: ControlPlane, *, service: Path = SERVICE, options: tuple[str, ...] = ()
) -> Iterator[ControlPlane]:
    """Machines, a service, and mindie-ha deployed on a started control plane, in addresses of their own."""
    with claimed_seed() as seed, simulated(plane, service=service, seed=seed, more=options):
        deploy(plane)
        path = f"{PATHS['Deployment']}/mindie-ha"
        replicas = int(request(plane, "GET", path)["spec"]["replicas"])
        until(lambda: len(our_pods(plane)) == replicas, what=f"{replicas} pods of the Deployment are Ready")
        block = first_address(seed).rsplit(".", 2)[0]
        assert all(pod["status"]["podIP"].startswith(f"{block}.") for pod in our_pods(plane)), "another block"
        yield plane


@contextmanager
def simulated(
    plane: ControlPlane, *, service: Path, seed: int, nodes: int = 10, more: tuple[str, ...] = ()
) -> Iterator[None]:
    """`mindie-ha sim --actors-only` with this service, all pods Ready, until the context ends."""
    log = plane.home / "sim.log"
    options = ("--actors-only", "--kubeconfig", str(plane.kubeconfig), "--nodes", str(nodes))
    command = [*PROGRAM, MAIN, "sim", *options, "--seed", str(seed), "--manifest", str(service), *more]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
    try:

        def runs() -> bool:
            assert process.poll() is None, f"sim ended: {log.read_text()[-2000:]}"
            return "heal" in log.read_text()

        until(runs, what=f"the simulated machines; see {log}")
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def deploy(plane: ControlPlane) -> None:
    """Apply `manifests/`, as `kubectl apply -k` would."""
    listed = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    objects = [
        document
        for name in listed
        for document in yaml.safe_load_all((MANIFESTS / name).read_text(encoding="utf-8"))
    ]
    objects.sort(key=lambda each: ORDER.index(each["kind"]) if each["kind"] in ORDER else len(ORDER))
    for each in objects:
        path = PATHS[each["kind"]]
        if each["kind"] == "PodDisruptionBudget":
            each["apiVersion"] = "policy/v1beta1"  # this server is older than policy/v1
        try:
            request(plane, "POST", path, each)
        except RefusedError as error:
            if error.status != 409:
                raise
            request(plane, "PATCH", f"{path}/{each['metadata']['name']}", each)


def account_token(plane: ControlPlane, name: str = "mindie-ha") -> str:
    """A token of a service account of ours, as a pod of it gets one."""
    path = f"{PATHS['ServiceAccount']}/{name}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    return str(request(plane, "POST", path, asked)["status"]["token"])


def admin_token(plane: ControlPlane) -> str:
    """The token of somebody who may do everything."""
    document = json.loads(plane.kubeconfig.read_text(encoding="utf-8"))
    return str(document["users"][0]["user"]["token"])


def our_pods(plane: ControlPlane) -> list[Body]:
    """The Ready pods of the Deployment, ordered by name."""
    selected = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/name%3Dmindie-ha"
    pods = [pod for pod in request(plane, "GET", selected)["items"] if is_ready(pod)]
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


def is_ready(pod: Body) -> bool:
    """Ready and not terminating."""
    conditions = pod.get("status", {}).get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def set_faults(plane: ControlPlane, node: str, faults: list[Body] | None) -> None:
    """Break a node or what is on it; None heals."""
    note = json.dumps(faults) if faults is not None else None
    body = {"metadata": {"annotations": {"sim.mindie-ha.io/faults": note}}}
    request(plane, "PATCH", f"/api/v1/nodes/{node}", body)


def heal(plane: ControlPlane) -> None:
    """Break nothing any more, whatever a test left behind."""
    for node in request(plane, "GET", "/api/v1/nodes")["items"]:
        if "sim.mindie-ha.io/faults" in (node["metadata"].get("annotations") or {}):
            set_faults(plane, node["metadata"]["name"], None)


def until(look: Callable[[], Any], *, what: str, within_s: float = WITHIN_S) -> Any:
    """Ask again and again, for tests that have no loop of their own."""
    deadline_s = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"not within {within_s:g} s: {what}"
        time.sleep(0.2)
    return found
