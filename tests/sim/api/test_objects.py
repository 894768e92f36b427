"""Create, read, update and patch: versions, server-owned metadata, refusals."""

from __future__ import annotations

import re

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.server import ApiServer
from tests.sim.api.conftest import GROUPS, MAPS, PODS, Api, Object, config_map, pod


def group(name: str, **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_created_object_has_uid_time_and_version(api: Api) -> None:
    code, made = await api("POST", MAPS, config_map("a", {"k": "v"}))
    assert code == 201
    meta = made["metadata"]
    assert re.fullmatch(r"[0-9a-f-]{36}", meta["uid"])
    assert meta["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert int(meta["resourceVersion"]) > 1
    assert await api.ok("GET", f"{MAPS}/a") == made


async def test_generated_names_and_uids_repeat_with_the_seed() -> None:
    made = []
    for _ in range(2):
        api = Api(ApiServer(clock=LoopClock(wall_origin_s=0), entropy=Entropy(7)))
        made.append(await api.ok("POST", MAPS, {"metadata": {"generateName": "x-"}}))
    assert made[0] == made[1]
    assert re.fullmatch(r"x-[bcdfghjklmnpqrstvwxz2456789]{5}", made[0]["metadata"]["name"])


async def test_create_twice_is_already_exists(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    code, status = await api("POST", MAPS, config_map("a"))
    assert (code, status["reason"], status["message"]) == (
        409, "AlreadyExists", 'configmaps "a" already exists',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{PODS}/x", 'pods "x" not found'),
        (f"{GROUPS}/x", 'podgroups.scheduling.volcano.sh "x" not found'),
        ("/api/v1/namespaces/mindie/unknowns/x", "the server could not find the requested resource"),
    ],
    ids=["core", "group", "kind"],
)
async def test_what_is_missing_is_404(api: Api, path: str, message: str) -> None:
    code, status = await api("GET", path)
    assert (code, status["kind"], status["reason"], status["message"]) == (404, "Status", "NotFound", message)


async def test_an_unknown_namespace_takes_no_objects(api: Api) -> None:
    code, status = await api("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("a"))
    assert (code, status["message"]) == (404, 'namespaces "nowhere" not found')


async def test_an_update_of_an_old_version_conflicts(api: Api) -> None:
    old = await api.ok("POST", MAPS, config_map("a", {"k": "1"}))
    await api.merge(f"{MAPS}/a", {"data": {"k": "2"}})
    old["data"]["k"] = "3"
    code, status = await api("PUT", f"{MAPS}/a", old)
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_an_update_that_changes_nothing_keeps_the_version(api: Api) -> None:
    made = await api.ok("POST", MAPS, config_map("a", {"k": "1"}))
    assert await api.ok("PUT", f"{MAPS}/a", made) == made
    _, patched = await api.merge(f"{MAPS}/a", {"data": {"k": "1"}})
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_an_update_of_a_custom_kind_needs_a_version(api: Api) -> None:
    await api.ok("POST", GROUPS, group("a"))
    code, status = await api("PUT", f"{GROUPS}/a", group("a"))
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.resourceVersion"


async def test_status_and_spec_are_written_through_their_own_paths(api: Api) -> None:
    made = await api.ok("POST", GROUPS, {**group("a", minMember=1), "status": {"phase": "Made"}})
    assert "status" not in made
    _, main = await api.merge(f"{GROUPS}/a", {"spec": {"minMember": 2}, "status": {"phase": "Main"}})
    assert (main["spec"], "status" in main, main["metadata"]["generation"]) == ({"minMember": 2}, False, 2)
    _, sub = await api.merge(f"{GROUPS}/a/status", {"spec": {"minMember": 3}, "status": {"phase": "Sub"}})
    assert (sub["spec"], sub["status"], sub["metadata"]["generation"]) == (
        {"minMember": 2},
        {"phase": "Sub"},
        2,
    )


async def test_a_pod_starts_pending_and_its_spec_is_frozen(api: Api) -> None:
    made = await api.ok("POST", PODS, pod("a"))
    assert made["status"]["phase"] == "Pending"
    code, status = await api.merge(f"{PODS}/a", {"spec": {"nodeName": "n1"}})
    assert (code, status["reason"], status["details"]["causes"][0]["field"]) == (422, "Invalid", "spec")
    assert "pod updates may not change fields other than" in status["message"]
    code, _ = await api.merge(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
    assert code == 200


async def test_a_dry_run_answers_and_stores_nothing(api: Api) -> None:
    code, made = await api("POST", MAPS, config_map("a"), dryRun="All")
    assert (code, "uid" in made["metadata"]) == (201, True)
    assert (await api("GET", f"{MAPS}/a"))[0] == 404


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", 400, "json parse error"),
        (b"[]", 400, "must be one ConfigMap"),
        (b'{"kind":"Pod"}', 400, "does not match the expected kind"),
        (b'{"metadata":{"name":"a","labels":{"on":true}}}', 400,
         "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"),
        (b'{"metadata":{"name":"a","namespace":"default"}}', 400, "does not match the namespace sent"),
        (b'{"metadata":{}}', 422, "name or generateName is required"),
        (b'{"metadata":{"name":"A_b"}}', 422, "lowercase RFC 1123 subdomain"),
        (b'{"metadata":{"name":"a","labels":{"x":"-"}}}', 422, "a valid label must be"),
        (b'{"metadata":{"name":"a","resourceVersion":"1"}}', 500, "resourceVersion should not be set"),
        (b'{"metadata":' + b"[" * 900 + b"]" * 900 + b"}", 400, "nested too deeply"),
    ],
    ids=["syntax", "list", "kind", "label-type", "namespace", "no-name", "name", "label", "version", "depth"],
)  # fmt: skip
async def test_a_bad_body_is_refused_with_the_reason(api: Api, body: bytes, code: int, text: str) -> None:
    answered, status = await api("POST", MAPS, body)
    assert answered == code, status
    assert text in status["message"]
    assert status.get("reason") == {400: "BadRequest", 422: "Invalid", 500: None}[code]


async def test_a_method_that_a_path_does_not_have_is_405(api: Api) -> None:
    code, status = await api("POST", f"{MAPS}/a", config_map("a"))
    assert (code, status["reason"]) == (405, "MethodNotAllowed")


async def test_writes_are_audited_with_who_and_what(api: Api) -> None:
    made = await api.ok("POST", MAPS, config_map("a"))
    await api("DELETE", f"{MAPS}/a")
    await api("DELETE", f"{MAPS}/a")
    seen = [(e.verb, e.name, e.uid, e.user_agent, e.code) for e in api.server.audit]
    uid = made["metadata"]["uid"]
    assert seen == [
        ("create", "a", uid, "test/1", 201),
        ("delete", "a", uid, "test/1", 200),
        ("delete", "a", "", "test/1", 404),
    ]
