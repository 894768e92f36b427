"""The difference of two tables names groups, servers and cards."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.model.ranktables import GlobalTable
from mindie_ha.ranktable.diff import Change, diff
from tests.ranktable.examples import global_table, instance, super_pod_instance

ONE = global_table({"a": instance(1)})
TWO = global_table({"a": instance(1), "b": instance(2)})


def _changes(before: GlobalTable | None, after: GlobalTable | None) -> list[tuple[str, Change]]:
    return [(group.group_id, group.change) for group in diff(before, after).groups]


def test_equal_tables_do_not_differ() -> None:
    assert diff(TWO, TWO).empty
    assert diff(None, None).empty


def test_the_order_of_lists_is_no_difference() -> None:
    assert diff(TWO, replace(TWO, groups=TWO.groups[::-1])).empty


def test_groups_come_and_go() -> None:
    assert _changes(ONE, TWO) == [("3", Change.ADDED)]
    assert _changes(TWO, ONE) == [("3", Change.REMOVED)]
    assert _changes(None, ONE) == [("0", Change.ADDED), ("1", Change.ADDED), ("2", Change.ADDED)]
    assert diff(None, ONE).version == ("", "1.0")


def test_a_rebuilt_instance_has_other_servers() -> None:
    after = global_table({"a": instance(3)})
    (group,) = diff(ONE, after).groups
    assert group.change is Change.CHANGED
    assert [(server.server_ip, server.change) for server in group.servers] == [
        ("172.16.1.1", Change.REMOVED),
        ("172.16.3.1", Change.ADDED),
    ]
    assert [device.change for device in group.servers[0].devices] == [Change.REMOVED] * 2


def test_a_card_that_was_replaced_is_named() -> None:
    group = ONE.groups[2]
    card = replace(group.servers[0].devices[1], device_id="7", device_ip="29.7.7.7")
    server = replace(group.servers[0], devices=(group.servers[0].devices[0], card))
    after = replace(ONE, groups=(*ONE.groups[:2], replace(group, servers=(server,))))
    (changed,) = diff(ONE, after).groups[0].servers
    (device,) = changed.devices
    assert changed.change is Change.CHANGED
    assert (device.rank_id, device.change, device.after) == ("1", Change.CHANGED, card)


def test_fields_of_the_group_are_named() -> None:
    before = global_table({"a": super_pod_instance()})
    group = replace(before.groups[2], deploy_server="2", super_pods=())
    (changed,) = diff(before, replace(before, groups=(*before.groups[:2], group))).groups
    assert changed.fields == ("deploy_server", "super_pod_list")
    assert changed.servers == ()


_TABLES = st.sets(st.integers(1, 5)).map(
    lambda numbers: global_table({str(number): instance(number) for number in numbers})
)


@settings(deadline=None)
@given(_TABLES, _TABLES)
def test_a_difference_is_empty_exactly_for_equal_tables_and_mirrors(
    left: GlobalTable, right: GlobalTable
) -> None:
    assert diff(left, right).empty is (left == right)
    mirror = {Change.ADDED: Change.REMOVED, Change.REMOVED: Change.ADDED, Change.CHANGED: Change.CHANGED}
    assert _changes(right, left) == [(group_id, mirror[change]) for group_id, change in _changes(left, right)]
