"""The scheduler's list over shards: empty, moving and vanishing ones."""

from __future__ import annotations

import pytest

from mindie_ha.cluster.retries import granted, job_of, parse_retries
from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.store import Store
from tests.cluster import facts
from tests.cluster.facts import make_store

pytestmark = pytest.mark.looptime

NOW_S = 1_700_000_000.0


def store_of(*items: SlimObject) -> Store:
    store = make_store()
    for item in items:
        store.apply(item)
    return store


def listed(store: Store, node: str = "n1", *, after_s: float = 0.0) -> set[str] | None:
    found = store.node_view(node, now_s=NOW_S + after_s).listed
    return set(found.unhealthy) if found is not None else None


async def test_a_node_that_no_shard_shows_is_not_listed() -> None:
    assert listed(store_of(facts.shard(0, n2=("", 1)))) is None


async def test_case_123_a_node_that_moves_between_shards_is_never_lost() -> None:
    store = store_of(facts.shard(1, n1=("Ascend910-1", 5)))
    store.apply(facts.shard(1, version=2, text=""))
    assert listed(store, after_s=1) == {"Ascend910-1"}
    store.apply(facts.shard(0, n1=("Ascend910-1,Ascend910-2", 6)))
    assert listed(store, after_s=2) == {"Ascend910-1", "Ascend910-2"}
    store.remove(facts.shard(1, version=2, text=""))
    assert listed(store, after_s=100) == {"Ascend910-1", "Ascend910-2"}


async def test_case_123_a_node_in_two_shards_counts_once_by_the_newest_report() -> None:
    store = store_of(facts.shard(1, n1=("Ascend910-1", 5)), facts.shard(0, n1=("", 9)))
    assert listed(store) == set()


async def test_a_node_that_stays_away_is_not_listed_any_more() -> None:
    store = store_of(facts.shard(0, n1=("Ascend910-1", 5)))
    store.apply(facts.shard(0, version=2, n2=("", 6)))
    assert listed(store, after_s=11) is None


@pytest.mark.parametrize("text", ["{", "[]", "null", "3"])
async def test_a_malformed_shard_keeps_its_last_good_content(text: str) -> None:
    store = store_of(facts.shard(0, n1=("Ascend910-1", 5)), facts.shard(0, version=2, text=text))
    assert listed(store) == {"Ascend910-1"}
    assert store.problems()


async def test_a_shard_that_only_got_newer_touches_nobody() -> None:
    store = store_of(facts.shard(0, n1=("Ascend910-1", 5)))
    assert store.apply(facts.shard(0, version=2, n1=("Ascend910-1", 6))) == frozenset()


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (None, 3),
        ("", 3),
        ("{}", 3),
        ("null", 3),
        ('{"m/j-u": {"UUID": "u", "Times": 7, "WrittenBy": "mindie-ha"}}', 3),
        ('{"m/j-u": {"UUID": "u", "Times": 7}}', None),
        ("{", None),
        ("[]", None),
    ],
    ids=["absent", "empty", "no-entry", "null", "ours", "volcanos", "broken", "list"],
)
def test_our_retry_entry_is_added_or_renewed_and_never_replaces_anothers(
    text: str | None, times: int | None
) -> None:
    written = granted(text, entry="m/j-u", job_uid="u", times=3)
    assert (written is None) == (times is None)
    if written is not None:
        assert parse_retries(written, where="x")["m/j-u"].times == times


def test_entries_of_other_jobs_stay_as_they_were() -> None:
    written = granted('{"a/b-c": {"Times": 1, "Extra": [1]}}', entry="m/j-u", job_uid="u", times=3)
    assert written is not None
    assert '"a/b-c":{"Times":1,"Extra":[1]}' in written


def test_the_job_of_an_entry() -> None:
    assert job_of("mindie/p-0-12345678-1234-1234-1234-123456789012") == "mindie/p-0"
    assert job_of("nonsense") == ""
