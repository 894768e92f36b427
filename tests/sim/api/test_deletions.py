"""Deletes: grace, preconditions, finalizers."""

from __future__ import annotations

from tests.sim.api.conftest import GROUPS, MAPS, PODS, Api, config_map, pod


async def test_an_unbound_pod_goes_at_once(api: Api) -> None:
    await api.ok("POST", PODS, pod("a"))
    gone = await api.ok("DELETE", f"{PODS}/a")
    assert gone["kind"] == "Pod"
    assert (await api("GET", f"{PODS}/a"))[0] == 404


async def test_a_bound_pod_stays_until_grace_zero(api: Api) -> None:
    await api.ok("POST", PODS, pod("a", node="n1"))
    await api.ok("DELETE", f"{PODS}/a")
    meta = (await api.ok("GET", f"{PODS}/a"))["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["deletionTimestamp"]) == (30, "2027-01-15T08:00:30Z")
    await api.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 60})
    assert (await api.ok("GET", f"{PODS}/a"))["metadata"]["deletionGracePeriodSeconds"] == 30
    await api.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 5})
    assert (await api.ok("GET", f"{PODS}/a"))["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert (await api("GET", f"{PODS}/a"))[0] == 404


async def test_a_delete_of_another_uid_or_version_conflicts(api: Api) -> None:
    made = await api.ok("POST", MAPS, config_map("a"))
    uid = made["metadata"]["uid"]
    code, status = await api("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "other"}})
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": Precondition failed: '
        f"UID in precondition: other, UID in object meta: {uid}"
    )
    code, status = await api("DELETE", f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    assert (code, status["reason"]) == (409, "Conflict")
    code, status = await api("DELETE", f"{MAPS}/a", {"preconditions": {"uid": uid}})
    assert (code, status["status"], status["details"]["uid"]) == (200, "Success", uid)


async def test_finalizers_hold_an_object_until_the_last_is_taken_away(api: Api) -> None:
    await api.ok("POST", GROUPS, {"metadata": {"name": "a", "finalizers": ["x/y"]}})
    await api.ok("DELETE", f"{GROUPS}/a")
    assert "deletionTimestamp" in (await api.ok("GET", f"{GROUPS}/a"))["metadata"]
    code, status = await api.merge(f"{GROUPS}/a", {"metadata": {"finalizers": ["x/y", "x/z"]}})
    assert (code, status["reason"]) == (422, "Invalid")
    await api.merge(f"{GROUPS}/a", {"metadata": {"finalizers": None}})
    assert (await api("GET", f"{GROUPS}/a"))[0] == 404


async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name, role in (("a", "x"), ("b", "y"), ("c", "x")):
        await api.ok("POST", MAPS, config_map(name, role=role))
    gone = await api.ok("DELETE", MAPS, labelSelector="role=x")
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "c"]
    left = await api.ok("GET", MAPS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]
