"""What MS Controller's table loader accepts, as numbers and predicates.

The loader rejects some bad tables and keeps its state, but takes others as "every node was removed" and
scales the whole service in. So we hold every group to these limits before anything is published.

Source: motor contract §1.4.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

MIN_GROUPS = 2
MAX_GROUPS = 98
MAX_GROUPS_SINGLE_NODE = 3
MAX_COORDINATORS = 2
MAX_SERVERS = 96
MIN_DEVICES = 1
MAX_DEVICES = 128
MAX_DEVICE_NUMBER = 2048
"""Upper bound of device_id, device_logical_id and rank_id."""
MAX_SUPER_DEVICE_ID = 2**30
MAX_DEPLOY_VALUE = 2**31 - 1
MIN_PORT = 1024
MAX_PORT = 65535
DEFAULT_PREDICT_PORT = "1025"
DEFAULT_MGMT_PORT = "1026"
HARDWARE_TYPES = ("800I A2(64G)", "800I A2(32G)")
"""Known to the heterogeneous mode: the first decodes, the second prefills."""


@lru_cache(maxsize=1 << 16)  # the same cards are looked at again with every event
def is_address(text: str) -> bool:
    """Whether `text` is an IPv4 or IPv6 address without scope, and not the all-zero one."""
    if "%" in text:
        return False
    try:
        return not ipaddress.ip_address(text).is_unspecified
    except ValueError:
        return False


def number(text: str, *, at_most: int, at_least: int = 0) -> int | None:
    """`text` as a plain decimal within the bounds, else None."""
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        return None
    value = int(text)
    return value if at_least <= value <= at_most else None


__all__ = [
    "DEFAULT_MGMT_PORT",
    "DEFAULT_PREDICT_PORT",
    "HARDWARE_TYPES",
    "MAX_COORDINATORS",
    "MAX_DEPLOY_VALUE",
    "MAX_DEVICES",
    "MAX_DEVICE_NUMBER",
    "MAX_GROUPS",
    "MAX_GROUPS_SINGLE_NODE",
    "MAX_PORT",
    "MAX_SERVERS",
    "MAX_SUPER_DEVICE_ID",
    "MIN_DEVICES",
    "MIN_GROUPS",
    "MIN_PORT",
    "is_address",
    "number",
]
