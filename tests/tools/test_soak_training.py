"""A training job, by pod or as a whole, in everything that can happen; now and then beside a service.

After every write and every event the judge holds the promises of docs/testing.md; and agents are asked to
join again only by a number that the ledger has.
"""

from __future__ import annotations

import pytest

from tools.soak.histories import play

SEEDS = 6  # many more with every `make soak`


@pytest.mark.parametrize("seed", range(2000, 2000 + SEEDS))
def test_a_training_job_outlives_everything(seed: int) -> None:
    result = play(seed, theme="training")
    assert result.ok, "\n".join((*result.story[-25:], *result.violations))
    assert result.recoveries
