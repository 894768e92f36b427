"""Server-side apply: ownership, conflicts, removal."""

from __future__ import annotations

from typing import Any

from tests.sim.api.conftest import MAPS, Api, config_map

APPLY = "application/apply-patch+yaml"


async def apply(
    api: Api, data: dict[str, str], *, manager: str, force: str = "false", name: str = "a"
) -> tuple[int, Any]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    query = {"fieldManager": manager, "force": force}
    return await api("PATCH", f"{MAPS}/{name}", body, content_type=APPLY, **query)


async def test_apply_creates_then_merges_then_rests(api: Api) -> None:
    code, made = await apply(api, {"x": "1"}, manager="one")
    assert code == 201
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:x": {}}}
    code, both = await apply(api, {"y": "1"}, manager="two")
    assert (code, both["data"]) == (200, {"x": "1", "y": "1"})
    code, again = await apply(api, {"y": "1"}, manager="two")
    assert again == both


async def test_a_field_of_another_manager_conflicts_unless_forced(api: Api) -> None:
    await apply(api, {"x": "1"}, manager="one")
    code, status = await apply(api, {"x": "2"}, manager="two")
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    code, forced = await apply(api, {"x": "2"}, manager="two", force="true")
    assert (code, forced["data"]) == (200, {"x": "2"})
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["two"]


async def test_a_field_no_longer_stated_goes_if_nobody_else_owns_it(api: Api) -> None:
    await apply(api, {"x": "1", "y": "1"}, manager="one")
    await apply(api, {"y": "1"}, manager="two")
    _, left = await apply(api, {}, manager="one")
    assert left["data"] == {"y": "1"}


async def test_an_update_takes_ownership_of_what_it_changes(api: Api) -> None:
    await apply(api, {"x": "1"}, manager="one")
    await api.merge(f"{MAPS}/a", {"data": {"x": "2"}}, fieldManager="editor")
    code, status = await apply(api, {"x": "3"}, manager="one")
    assert (code, status["message"]) == (409, 'Apply failed with 1 conflict: conflict with "editor": .data.x')


async def test_what_was_there_before_the_first_apply_conflicts(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a", {"x": "1"}))
    code, _ = await apply(api, {"x": "1"}, manager="one")
    assert code == 200
    code, status = await apply(api, {"x": "2"}, manager="two")
    assert 'conflict with "before-first-apply"' in status["message"]


async def test_apply_needs_a_manager(api: Api) -> None:
    code, status = await api("PATCH", f"{MAPS}/a", b"{}", content_type=APPLY)
    assert code == 422
    assert "fieldManager: Required value" in status["message"]
