"""The edges of the controller: everything through which the outside is reached, handed in from above.

Tests and simulations swap these and nothing else; the same controller then runs in memory, on virtual time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from mindie_ha.channels.http_push import open_session
from mindie_ha.channels.ms_endpoints import Endpoints
from mindie_ha.cluster.leader_labels import OwnPod
from mindie_ha.cluster.transports import Transport
from mindie_ha.kit.clock import Clock, Steady, loop_time
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Everything through which the outside is reached; tests and simulations swap these."""

    transport: Transport
    clock: Clock
    entropy: Entropy
    log: Log
    session: Callable[[], aiohttp.ClientSession] = open_session
    endpoints: Endpoints | None = None  # of MS pods; None: by HTTP, where `serve` allows sockets
    in_pod: bool = False  # the service account of a pod is who we are
    steady: Steady = loop_time  # the time of the Lease; in a real process `boot_time`
    identity: str = ""  # of this process, in the Lease; made up where empty
    pod: OwnPod | None = None  # the pod we run in; None: outside of a cluster
    serve: bool = True  # False: no listening sockets, for simulations on virtual time
    filled: Callable[[], None] = lambda: None  # called once the caches are filled
