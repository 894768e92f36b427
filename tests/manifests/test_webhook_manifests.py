"""The optional component: its objects fit the schema, and its patch fits the Deployment."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from mindie_ha.model.settings import WebhookSettings
from mindie_ha.web.admission import PATH

FOLDER = Path(__file__).resolve().parents[2] / "manifests"
HOOK = FOLDER / "webhook"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((HOOK / "webhook.yaml").read_text(encoding="utf-8")))
SERVICE, CONFIGURATION = OBJECTS


def patched() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "deployment.yaml").read_text(encoding="utf-8"))
    found = deepcopy(found)
    for change in yaml.safe_load((HOOK / "deployment-patch.yaml").read_text(encoding="utf-8")):
        assert change["op"] == "add"
        *above, last = change["path"].strip("/").split("/")
        holder: Any = found
        for part in above:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        if last == "-":
            holder.append(change["value"])
        else:
            assert last not in holder, "the patch would replace what the Deployment has"
            holder[last] = change["value"]
    return found


@pytest.mark.parametrize("document", [*OBJECTS, patched()], ids=lambda each: str(each["kind"]))
def test_objects_fit_the_schema(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.28", strict=True)


def test_the_component_lists_its_files() -> None:
    component = yaml.safe_load((HOOK / "kustomization.yaml").read_text(encoding="utf-8"))
    assert component["kind"] == "Component"
    named = [*component["resources"], *(patch["path"] for patch in component["patches"])]
    assert sorted(named) == sorted(
        path.name for path in HOOK.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_the_way_from_the_api_server_to_the_port() -> None:
    (hook,) = CONFIGURATION["webhooks"]
    service = hook["clientConfig"]["service"]
    assert (service["namespace"], service["name"]) == (
        SERVICE["metadata"]["namespace"],
        SERVICE["metadata"]["name"],
    )
    assert service["path"] == PATH
    assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "None")
    (container,) = patched()["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    (port,) = SERVICE["spec"]["ports"]
    assert WebhookSettings().listen == f":{ports[port['targetPort']]}"
    assert "--webhook" in container["args"]
