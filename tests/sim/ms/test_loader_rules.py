"""The consumer's table rules: what is kept, what is taken, what wrongly empties the service."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mindie_ha.sim.ms import loaders

Table = dict[str, Any]
Edit = Callable[[Callable[[Table], object]], str]


def groups(table: Table) -> list[Any]:
    return table["server_group_list"]  # type: ignore[no-any-return]


def first_server(table: Table) -> Table:
    return groups(table)[2]["server_list"][0]  # type: ignore[no-any-return]


def later_server(table: Table) -> Table:
    return groups(table)[3]["server_list"][0]  # type: ignore[no-any-return]


def test_a_good_table_gives_instances_with_role_and_master(one_p_one_d: Table) -> None:
    result = loaders.load(json.dumps(one_p_one_d))

    assert result == loaders.Load(
        accepted=True,
        instances=(
            loaders.Instance("2", loaders.PREFILL, "127.5.1.2", ("127.5.1.1", "127.5.1.2"), 2),
            loaders.Instance("3", loaders.DECODE, "127.5.2.1", ("127.5.2.1",), 1),
        ),
        coordinators=("127.5.0.1",),
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(lambda t: t.pop("server_group_list"), id="no group list"),
        pytest.param(lambda t: t.update(server_group_list=[]), id="empty group list"),
        pytest.param(lambda t: groups(t).pop(0), id="no group 0"),
        pytest.param(lambda t: groups(t).extend([groups(t)[3]] * 95), id="99 groups"),
        pytest.param(lambda t: groups(t)[0]["server_list"].append({}), id="coordinator without address"),
        pytest.param(
            lambda t: groups(t)[0].update(server_list=[{"server_ip": "0.0.0.0"}]),  # noqa: S104
            id="coordinator 0.0.0.0",
        ),
        pytest.param(lambda t: groups(t)[0].pop("server_list"), id="group 0 without list"),
        pytest.param(lambda t: groups(t)[2].update(group_id="-1"), id="group id below 0"),
        pytest.param(lambda t: groups(t)[2].update(group_id=2), id="group id a number"),
        pytest.param(lambda t: first_server(t).update(server_ip=""), id="first group: bad IP"),
        pytest.param(lambda t: first_server(t).update(server_id="node-1"), id="first group: server_id no IP"),
        pytest.param(lambda t: first_server(t).update(device=[]), id="first group: no device"),
        pytest.param(lambda t: first_server(t)["device"][0].update(device_ip=""), id="empty device IP"),
        pytest.param(lambda t: first_server(t)["device"][0].update(rank_id="2049"), id="rank too large"),
        pytest.param(lambda t: first_server(t)["device"][0].update(rank_id=1), id="rank a number"),
        pytest.param(
            lambda t: first_server(t)["device"][0].update(super_device_id="1073741825"), id="super device"
        ),
        pytest.param(lambda t: groups(t).insert(2, None), id="null among groups"),
        pytest.param(lambda t: groups(t).__delitem__(slice(2, None)), id="no server group"),
    ],
)
def test_a_structural_error_keeps_the_previous_state(edit: Edit, how: Callable[[Table], object]) -> None:
    result = loaders.load(edit(how))

    assert not result.accepted
    assert result.reason


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(lambda t: later_server(t).update(server_ip="x"), id="bad IP in a later group"),
        pytest.param(lambda t: later_server(t).update(server_ip="127.5.1.1"), id="repeated ip and port"),
        pytest.param(lambda t: groups(t)[3].update(server_list=None), id="later group without servers"),
    ],
)
def test_an_error_in_a_later_group_empties_the_service(edit: Edit, how: Callable[[Table], object]) -> None:
    result = loaders.load(edit(how))

    assert result.zeroed
    assert result.instances == ()


@pytest.mark.parametrize(
    ("how", "instances"),
    [
        pytest.param(lambda t: groups(t)[0].update(server_list=[]), 2, id="no coordinator"),
        pytest.param(lambda t: groups(t)[3].update(server_list=[]), 1, id="empty instance"),
        pytest.param(lambda t: groups(t).reverse(), 2, id="any order of groups"),
        pytest.param(lambda t: later_server(t).pop("device"), 2, id="later group is not validated"),
        pytest.param(
            lambda t: later_server(t).update(server_ip="127.5.1.1", mgmt_port="1030"), 2, id="other port"
        ),
    ],
)
def test_what_is_accepted(edit: Edit, how: Callable[[Table], object], instances: int) -> None:
    result = loaders.load(edit(how))

    assert result.accepted
    assert not result.zeroed
    assert len(result.instances) == instances


def test_text_that_is_no_json_keeps_the_previous_state() -> None:
    assert not loaders.load('{"server_group_list": [').accepted


@pytest.mark.parametrize(
    ("value", "prefill", "decode", "role"),
    [
        ("0", False, True, loaders.PREFILL),
        ("1", False, True, loaders.DECODE),
        ("1", True, False, loaders.PREFILL),
        ("2", False, False, loaders.PREFILL),
        ("1", True, True, loaders.DECODE),
        ("0", False, False, loaders.UNDEFINED),
        (None, False, True, loaders.UNDEFINED),
    ],
)
def test_deploy_server_means_what_the_two_settings_say(
    value: str | None, prefill: bool, decode: bool, role: str
) -> None:
    assert loaders.role_of(value, prefill, decode) == role
