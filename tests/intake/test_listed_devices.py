"""The scheduler's list: shards, empty shards, hostile entries."""

from __future__ import annotations

import json

import pytest

from mindie_ha.intake.listed_devices import merge, parse
from mindie_ha.model.errors import InputError

UNHEALTHY = "huawei.com/Ascend910-Unhealthy"


def shard(**nodes: object) -> str:
    """A shard whose entries are named after nodes."""
    return json.dumps({f"mindx-dl-deviceinfo-{name}": entry for name, entry in nodes.items()})


def listed(text: str) -> dict[str, object]:
    return {"DeviceList": {UNHEALTHY: text}, "UpdateTime": 1, "CmName": "x", "SuperPodID": -2}


def test_every_node_is_listed_with_its_unhealthy_cards() -> None:
    found = parse(shard(a=listed("Ascend910-1,Ascend910-2"), b=listed("")), where="cluster-info-device-0")
    assert found.nodes["a"].unhealthy == {"Ascend910-1", "Ascend910-2"}
    assert found.nodes["b"].unhealthy == frozenset()


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_unused_shard_is_no_error(text: str) -> None:
    assert parse(text, where="shard").nodes == {}


def test_a_bad_entry_hurts_only_itself() -> None:
    text = json.dumps(
        {
            **json.loads(shard(good=listed("Ascend910-1"), bad=None, worse={"DeviceList": {UNHEALTHY: 3}})),
            "stray": {},
        }
    )
    found = parse(text, where="shard")
    assert set(found.nodes) == {"good"}
    assert len(found.refused) == 3


@pytest.mark.parametrize("text", ["{", "[]", "null", "3"])
def test_a_value_that_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="shard"):
        parse(text, where="shard")


def test_a_node_in_two_shards_is_bad_wherever_one_says_so() -> None:
    one = parse(shard(a=listed("Ascend910-1")), where="0")
    two = parse(shard(a=listed("Ascend910-2")), where="1")
    assert merge([one, two])["a"].unhealthy == {"Ascend910-1", "Ascend910-2"}
