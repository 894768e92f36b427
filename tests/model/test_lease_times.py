"""Times of the Lease that do not fit together are refused at start."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mindie_ha.model.settings import LeaseSettings, Settings


@pytest.mark.parametrize(
    ("duration_s", "renew_s", "retry_s", "fits"),
    [
        (15, 5.0, 5.0, True),
        (15, 5.0, 5.01, False),
        (15, 5.01, 5.0, False),
        (3, 1.0, 1.0, True),
        (2, 1.0, 1.0, False),
    ],
    ids=["just", "retry-too-long", "renew-too-long", "short", "too-short"],
)
def test_two_requests_may_fail_before_it_is_lost(
    duration_s: int, renew_s: float, retry_s: float, fits: bool
) -> None:
    if fits:
        LeaseSettings(duration_s=duration_s, renew_s=renew_s, retry_s=retry_s)
        return
    with pytest.raises(ValidationError, match="must not be above"):
        LeaseSettings(duration_s=duration_s, renew_s=renew_s, retry_s=retry_s)


def test_the_defaults_fit() -> None:
    lease = Settings().lease
    assert lease.renew_s + 2 * lease.retry_s <= lease.duration_s
