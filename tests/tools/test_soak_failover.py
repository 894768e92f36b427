"""Active and standby in random interleavings of node losses, slow kubelets, API errors and deaths of ours.

After every write and every event the judge holds the promises of docs/testing.md, among them: the pod rung
never takes the last replica that runs, and the job rung takes one that serves only where the job has a place.
"""

from __future__ import annotations

import pytest

from tools.soak.histories import play

SEEDS = 6  # a hundred more with every `make soak`


@pytest.mark.parametrize("seed", range(1000, 1000 + SEEDS))
def test_both_replicas_are_never_down_by_our_hand(seed: int) -> None:
    result = play(seed, theme="failover")
    assert result.ok, "\n".join((*result.story[-25:], *result.violations))
