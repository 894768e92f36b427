"""The same cluster gives the same bytes, whatever order it is listed in; ids never wander."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindie_ha.model.ranktables import (
    HcclTable,
    MsPod,
    RanktableError,
    Severity,
    SuperPod,
    TableInstance,
    verdict,
)
from mindie_ha.ranktable.build import build
from mindie_ha.ranktable.encode import digest, encode
from mindie_ha.ranktable.hccl import parse_hccl
from mindie_ha.ranktable.ids import assign_ids
from mindie_ha.ranktable.reading import read_global
from mindie_ha.ranktable.validate import validate
from tests.ranktable.examples import hccl_text, instance, judge, pods_of, super_pod_instance

patient = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

COORDINATORS = [MsPod(f"coordinator-{n}", f"10.200.0.{n + 1}", f"192.168.0.{n + 1}") for n in range(2)]
CONTROLLERS = [MsPod(f"controller-{n}", f"10.201.0.{n + 1}", f"192.168.1.{n + 1}") for n in range(2)]


@st.composite
def services(draw: st.DrawFn) -> list[tuple[int, HcclTable]]:
    """A service of some A2 and A3 instances of different sizes."""
    numbers = draw(st.lists(st.integers(1, 200), min_size=1, max_size=6, unique=True))
    return [
        (
            number,
            draw(st.sampled_from([instance, super_pod_instance]))(
                number, servers=draw(st.integers(1, 4)), cards=draw(st.integers(1, 8))
            ),
        )
        for number in numbers
    ]


def _shuffled(draw: st.DataObject, table: HcclTable) -> HcclTable:
    """Every list whose order means nothing in another order; also the same super pod cut in two entries."""
    super_pods = [
        SuperPod(pod.super_pod_id, (server_id,)) for pod in table.super_pods for server_id in pod.server_ids
    ]
    return replace(
        table,
        servers=tuple(draw.draw(st.permutations(table.servers))),
        super_pods=tuple(draw.draw(st.permutations(super_pods))),
    )


def _bytes(
    service: Sequence[tuple[int, HcclTable]], ids: dict[str, int], ms: Sequence[Sequence[MsPod]]
) -> bytes:
    instances = [TableInstance(f"ns/server-{number}", table, "1") for number, table in service]
    return encode(build(coordinators=ms[0], controllers=ms[1], instances=instances, ids=ids))


@patient
@given(services(), st.data())
def test_any_input_order_gives_identical_bytes(
    service: list[tuple[int, HcclTable]], data: st.DataObject
) -> None:
    keys = [f"ns/server-{number}" for number, _ in service]
    ids = assign_ids({}, keys)
    again = assign_ids({}, data.draw(st.permutations(keys)))
    shuffled = [(number, _shuffled(data, table)) for number, table in data.draw(st.permutations(service))]
    first = _bytes(service, ids, (COORDINATORS, CONTROLLERS))
    second = _bytes(shuffled, again, (COORDINATORS[::-1], CONTROLLERS[::-1]))
    assert second == first
    assert digest(second) == digest(first)


@patient
@given(services())
def test_what_passes_the_checks_builds_a_table_without_a_reject(service: list[tuple[int, HcclTable]]) -> None:
    for number, table in service:
        assert judge(parse_hccl(hccl_text(table)), pods=pods_of(table, number)) == ()
    ids = assign_ids({}, [f"ns/server-{number}" for number, _ in service])
    text = _bytes(service, ids, (COORDINATORS, CONTROLLERS)).decode()
    reading = read_global(text)
    assert reading.table is not None
    assert verdict(validate(reading.table)) is Severity.ACCEPT
    assert encode(reading.table).decode() == text


KEYS = st.sampled_from([f"ns/server-{number}" for number in range(12)])


@patient
@given(st.lists(st.sets(KEYS), max_size=12))
def test_ids_are_stable_while_alive_unique_and_lowest_free(steps: list[set[str]]) -> None:
    ids: dict[str, int] = {}
    for live in steps:
        before, ids = ids, assign_ids(ids, live)
        assert set(ids) == live
        assert all(ids[key] == number for key, number in before.items() if key in live)
        assert len(set(ids.values())) == len(ids)
        kept = {number for key, number in before.items() if key in live}
        new = sorted(set(ids.values()) - kept)
        free = (number for number in range(2, 99) if number not in kept)
        assert new == [next(free) for _ in new]
        assert assign_ids(ids, live) == ids


@pytest.mark.parametrize(
    ("known", "live", "expected"),
    [
        pytest.param({}, ["s2", "s0", "s1"], {"s0": 2, "s1": 3, "s2": 4}, id="first-by-name"),
        pytest.param({"s0": 2, "s1": 3, "s2": 4}, ["s0", "s2"], {"s0": 2, "s2": 4}, id="one-gone"),
        pytest.param({"s0": 2, "s2": 4}, ["s0", "s2", "a"], {"s0": 2, "s2": 4, "a": 3}, id="lowest-free"),
        pytest.param({"s0": 0, "s1": -5}, ["s0", "s1"], {"s0": 2, "s1": 3}, id="foreign-ids"),
        pytest.param({"s0": 7, "s1": 7}, ["s1", "s0"], {"s0": 7, "s1": 2}, id="claimed-twice"),
    ],
)
def test_ids(known: dict[str, int], live: list[str], expected: dict[str, int]) -> None:
    assert assign_ids(known, live) == expected


@pytest.mark.parametrize(
    ("keys", "ids", "what"),
    [
        pytest.param(["a"], {}, "no group id", id="none"),
        pytest.param(["a"], {"a": 1}, "no group id", id="id-of-a-controller"),
        pytest.param(["a", "b"], {"a": 2, "b": 2}, "already belongs to a", id="same-id"),
        pytest.param(["a", "a"], {"a": 2}, "already belongs to a", id="listed-twice"),
    ],
)
def test_a_table_with_ids_that_do_not_fit_is_not_built(
    keys: list[str], ids: dict[str, int], what: str
) -> None:
    instances = [TableInstance(key, instance(number + 1)) for number, key in enumerate(keys)]
    with pytest.raises(RanktableError, match=what):
        build(coordinators=(), controllers=(), instances=instances, ids=ids)


def test_ms_pods_that_are_no_members_are_left_out() -> None:
    ready = MsPod("b", "10.0.0.2", "192.168.0.2")
    others = [
        MsPod("a", "10.0.0.1", "192.168.0.1", alive=False),
        MsPod("c", "10.0.0.3", ""),
        MsPod("d", "", ""),
        MsPod("e", "10.0.0.5", "0.0.0.0"),  # noqa: S104 - not bound, refused
    ]
    table = build(coordinators=[*others, ready], controllers=others, instances=(), ids={})
    assert [server.server_ip for server in table.groups[0].servers] == ["192.168.0.2"]
    assert table.groups[1].servers == ()
    assert [group.group_id for group in table.groups] == ["0", "1"]
