"""What stands in every cluster of the field: the kinds AscendJob, PodGroup, Queue and vcjob.

A small synchronous client: the control plane is started by programs that have no event loop.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tools.control_plane.errors import ControlPlaneError
from tools.control_plane.planes import ControlPlane

KINDS = Path(__file__).resolve().parents[2] / "mindie_ha" / "sim" / "data" / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ESTABLISHED_S = 120.0
ASK_S = 30.0
Body = dict[str, Any]


def install_kinds(plane: ControlPlane) -> None:
    """Create the CustomResourceDefinitions and wait until they are served; raises ControlPlaneError."""
    definitions = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(KINDS.glob("*.yaml"))]
    for each in definitions:
        request(plane, "POST", DEFINITIONS, each)
    deadline_s = time.monotonic() + ESTABLISHED_S
    for each in definitions:
        name = each["metadata"]["name"]
        while not _established(request(plane, "GET", f"{DEFINITIONS}/{name}")):
            if time.monotonic() > deadline_s:
                raise ControlPlaneError(f"{name} is not served after {ESTABLISHED_S:g} s")
            time.sleep(0.1)


def _established(definition: Body) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []  # null while nobody looked at it
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


class RefusedError(ControlPlaneError):
    """The API server answered with an error; `status` is its HTTP code."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def request(plane: ControlPlane, method: str, path: str, body: Body | None = None) -> Body:
    """One request as admin, a PATCH as merge patch; raises RefusedError, or its base without an answer."""
    document = json.loads(plane.kubeconfig.read_text(encoding="utf-8"))
    token = document["users"][0]["user"]["token"]
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": content}
    data = json.dumps(body).encode() if body is not None else None
    context = ssl.create_default_context(cafile=str(plane.home / "pki" / "ca.crt"))
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    asked = urllib.request.Request(plane.server + path, data=data, headers=headers, method=method)  # noqa: S310
    try:
        with urllib.request.build_opener(*handlers).open(asked, timeout=ASK_S) as answer:
            found: Body = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")[:500]
        raise RefusedError(error.code, f"{method} {path}: {error.code}: {said}") from None
    except (OSError, ValueError) as error:
        raise ControlPlaneError(f"{method} {path}: {error}") from None
    return found
