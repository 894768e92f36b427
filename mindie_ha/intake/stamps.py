"""Times as the writers tell them: seconds here, milliseconds there, even within one map.

The unit is read from the magnitude; 0, -1 and everything else that is no time mean "unknown", which is 0.
Source: fault input contract §8.2 items 1 and 2; vector V50.
"""

from __future__ import annotations

from datetime import datetime

_MILLISECONDS_FROM = 100_000_000_000  # as seconds this would be the year 5138
_LIMIT = 1 << 53


def to_seconds(value: object) -> float:
    """Wall time in seconds of a number in seconds or milliseconds; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LIMIT:
        return 0.0
    return value / 1000 if value >= _MILLISECONDS_FROM else float(value)


def rfc3339(text: str) -> float:
    """Wall time in seconds of an RFC 3339 text; 0 for anything else."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.timestamp() if moment.tzinfo is not None else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0
