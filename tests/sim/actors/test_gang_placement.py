"""Where a gang goes: all or nothing, healthy cards, taints, selectors, anti-affinity, super pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.sim.actors.fleets import free_cards
from mindie_ha.sim.actors.machines import RESOURCE, NodeModel, a2_nodes, base_device_infos
from mindie_ha.sim.actors.placements import HOSTNAME, Gang, Guest, Machine, place
from mindie_ha.sim.client import Object

TAINT = {"key": "mindie-ha.io/isolated", "effect": "NoSchedule"}


def machine(name: str, *, free: int = 8, **more: object) -> Machine:
    cards = tuple(f"Ascend910-{index}" for index in range(8 - free, 8))
    return replace(Machine(name, {HOSTNAME: name}, free=cards), **more)  # type: ignore[arg-type]


def guest(name: str, cards: int = 8, *, spec: Object | None = None, **labels: str) -> Guest:
    return Guest(name, "mindie", labels, spec or {}, cards)


def gang(*pods: Guest, need: int | None = None, **more: object) -> Gang:
    built = Gang(pods, len(pods) if need is None else need, positions={p.name: i for i, p in enumerate(pods)})
    return replace(built, **more)  # type: ignore[arg-type]


def nodes_of(found: Gang, *machines: Machine) -> dict[str, str]:
    return {name: seat.node for name, seat in place(found, machines).seats.items()}


def test_all_pods_are_placed_or_none() -> None:
    placement = place(gang(guest("a"), guest("b")), [machine("n0"), machine("n1", free=7)])
    assert placement.seats == {}
    assert placement.refusals["b"] == "0/2 nodes are available: 2 Insufficient healthy NPUs."
    assert placement.refusals["a"] == "waits for the rest of its gang"


def test_down_to_the_minimum_the_rest_may_wait() -> None:
    assert nodes_of(gang(guest("a"), guest("b"), need=1), machine("n0")) == {"a": "n0"}


def test_the_fullest_node_that_fits_is_filled_first() -> None:
    found = nodes_of(gang(guest("a", 2)), machine("n0"), machine("n1", free=3), machine("n2", free=1))
    assert found == {"a": "n1"}


def test_pods_without_cards_keep_out_of_the_way() -> None:
    small = guest("a", 0)
    busy = machine("n0", free=0, guests=(guest("x"),))
    assert nodes_of(gang(small), busy, machine("n1"), machine("n2", guests=(small,))) == {"a": "n1"}
    assert nodes_of(gang(guest("b")), machine("n1", guests=(small,)), machine("n2")) == {"b": "n2"}


def test_ties_go_by_number() -> None:
    assert nodes_of(gang(guest("a")), machine("n10"), machine("n2")) == {"a": "n2"}


def test_a_pod_gets_the_lowest_free_cards() -> None:
    placement = place(gang(guest("a", 2)), [machine("n0", free=3)])
    assert placement.seats["a"].cards == ("Ascend910-5", "Ascend910-6")


def test_everybody_goes_home_when_they_can() -> None:
    found = gang(guest("a"), guest("b"), previous={"a": "n1", "b": "n0"})
    assert nodes_of(found, machine("n0"), machine("n1")) == {"a": "n1", "b": "n0"}
    assert nodes_of(found, machine("n0"), machine("n1", free=0), machine("n2")) == {"a": "n2", "b": "n0"}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        pytest.param(
            machine("n0", taints=(TAINT,)), "untolerated taint {mindie-ha.io/isolated}", id="NoSchedule"
        ),
        pytest.param(
            machine("n0", taints=({**TAINT, "effect": "NoExecute"},)), "untolerated taint", id="NoExecute"
        ),
        pytest.param(machine("n0", refusal="node(s) were not ready"), "not ready", id="not-ready"),
        pytest.param(machine("n0", labels={HOSTNAME: "n0", "kind": "b"}), "affinity/selector", id="selector"),
        pytest.param(machine("n0", free=7), "Insufficient healthy NPUs", id="cards"),
    ],
)
def test_a_node_that_does_not_qualify(node: Machine, reason: str) -> None:
    spec = {"nodeSelector": {"kind": "a"}} if "kind" in node.labels else {}
    placement = place(gang(guest("a", spec=spec)), [node])
    assert not placement.seats
    assert reason in placement.refusals["a"]


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param({"operator": "Exists"}, id="all"),
        pytest.param({"key": TAINT["key"], "operator": "Exists"}, id="key"),
        pytest.param({"key": TAINT["key"], "effect": "NoSchedule"}, id="equal-empty-value"),
    ],
)
def test_a_tolerated_taint_does_not_matter(toleration: Object) -> None:
    pod = guest("a", spec={"tolerations": [toleration]})
    assert nodes_of(gang(pod), machine("n0", taints=(TAINT,))) == {"a": "n0"}


def test_a_prefer_no_schedule_taint_keeps_nobody_out() -> None:
    assert nodes_of(gang(guest("a")), machine("n0", taints=({**TAINT, "effect": "PreferNoSchedule"},)))


def repelling(name: str) -> Guest:
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchExpressions": [{"key": "deploy-name", "operator": "In", "values": ["x"]}]},
    }
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    return Guest(name, "mindie", {"deploy-name": "x"}, spec, 2)


def test_anti_affinity_spreads_a_gang_and_respects_guests() -> None:
    found = nodes_of(
        gang(repelling("a"), repelling("b")),
        machine("n0", guests=(repelling("z"),)),
        machine("n1"),
        machine("n2"),
    )
    assert sorted(found.values()) == ["n1", "n2"]


def test_anti_affinity_counts_in_both_directions() -> None:
    plain = Guest("a", "mindie", {"deploy-name": "x"}, {}, 2)
    assert nodes_of(gang(plain), machine("n0", guests=(repelling("z"),)), machine("n1")) == {"a": "n1"}
    elsewhere = Guest("a", "other", {"deploy-name": "x"}, {}, 2)
    assert nodes_of(gang(elsewhere), machine("n0", guests=(repelling("z"),))) == {"a": "n0"}


def fleet(*rooms: int) -> list[Machine]:
    """Two nodes a super pod, with this many free cards each."""
    return [machine(f"n{index}", free=free, super_pod=index // 2) for index, free in enumerate(rooms)]


def test_a_block_stays_inside_one_super_pod() -> None:
    assert nodes_of(gang(guest("a"), guest("b"), block=2), *fleet(8, 0, 8, 8)) == {"a": "n2", "b": "n3"}
    assert nodes_of(gang(guest("a"), guest("b"), block=2), *fleet(8, 0, 0, 8)) == {}


def test_blocks_may_lie_in_different_super_pods() -> None:
    assert nodes_of(gang(guest("a"), guest("b"), block=1), *fleet(8, 0, 0, 8)) == {"a": "n0", "b": "n3"}


def test_a_replaced_member_follows_its_siblings() -> None:
    lone = gang(guest("b"), block=2, fixed={0: 1}, positions={"b": 1})
    assert nodes_of(lone, *fleet(8, 8, 0, 8)) == {"b": "n3"}
    assert nodes_of(lone, *fleet(8, 8, 0, 0)) == {}


def test_a_block_goes_back_to_its_super_pod() -> None:
    found = gang(guest("a"), guest("b"), block=2, previous={"a": "n2", "b": "n3"})
    assert nodes_of(found, *fleet(8, 8, 8, 8)) == {"a": "n2", "b": "n3"}


@pytest.mark.parametrize(
    ("devices", "used", "distributed", "free"),
    [
        pytest.param({}, set(), False, 8, id="all"),
        pytest.param(None, set(), False, 0, id="node-is-not-listed"),
        pytest.param({f"{RESOURCE}-Unhealthy": "Ascend910-3"}, set(), False, 7, id="unhealthy"),
        pytest.param({f"{RESOURCE}-Recovering": "Ascend910-3"}, set(), False, 7, id="recovering"),
        pytest.param({f"{RESOURCE}-NetworkUnhealthy": "Ascend910-3"}, set(), False, 8, id="network-single"),
        pytest.param(
            {f"{RESOURCE}-NetworkUnhealthy": "Ascend910-3"}, set(), True, 7, id="network-distributed"
        ),
        pytest.param({}, {"Ascend910-0", "Ascend910-1"}, False, 6, id="used"),
    ],
)
def test_free_cards(devices: dict[str, str] | None, used: set[str], distributed: bool, free: int) -> None:
    model: NodeModel = a2_nodes(1)[0]
    node = {
        "metadata": {"annotations": {"baseDeviceInfos": base_device_infos(model)}},
        "status": {"allocatable": {RESOURCE: "8"}},
    }
    assert len(free_cards(node, devices, used, distributed=distributed)) == free
