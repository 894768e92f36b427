"""Whether an address may have the tables and fault messages of a service.

Allowed are the pods of the service's namespace, and the nodes under the service's own pods: that is what the
peer of a pod on the host network looks like, and of one whose connection was rewritten on its way. Allowed
for every service are `grpc.trusted_proxies`, which answer for those behind them.

An address can be unknown because our picture lags or because the network rewrote it into one that nobody
knows (the tunnel of an overlay network). So a refusal is not an end: the stream stays open and is asked
again, and `warn` serves it and tells which address it was.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

from mindie_ha.model.ids import ScopeKey
from mindie_ha.model.pods import Pod
from mindie_ha.model.settings import PeerCheckMode
from mindie_ha.model.workloads import Workload

TOLD = 1024  # strangers remembered, so that each is told once

Stranger = Callable[[ScopeKey, str, bool], None]
"""Told once of a service, an address and whether it was served all the same."""


class Census(Protocol):
    """What the store knows of addresses."""

    def pods_by_ip(self, ip: str) -> tuple[Pod, ...]:
        """The pods that have an address."""
        ...

    def workloads_of(self, scope: ScopeKey) -> tuple[Workload, ...]:
        """The workloads of a service."""
        ...

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        """The pods of a workload."""
        ...

    def node_addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a node."""
        ...


class Proxies:
    """Addresses that stand for many clients."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(text, strict=False) for text in networks)

    def __contains__(self, ip: object) -> bool:
        if not self._networks:
            return False
        try:
            address = ipaddress.ip_address(str(ip))
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class PeerCheck:
    """See the module."""

    def __init__(
        self, *, mode: PeerCheckMode, proxies: Proxies, census: Census, on_stranger: Stranger
    ) -> None:
        self._mode = mode
        self._proxies = proxies
        self._census = census
        self._on_stranger = on_stranger
        self._told: OrderedDict[tuple[ScopeKey, str], None] = OrderedDict()

    def refusal(self, service: ScopeKey, ip: str) -> str:
        """Why `ip` gets nothing of `service`, as a sentence; empty where it does."""
        if self._mode is PeerCheckMode.OFF or self.belongs(service, ip):
            return ""
        served = self._mode is PeerCheckMode.WARN
        if self._census.workloads_of(
            service
        ):  # over HTTP anybody can make up a service, and would fill the log
            self._tell(service, ip, served)
        if served:
            return ""
        return (
            f"{ip or 'this peer'} is neither a pod of the namespace {service.namespace} nor a node of the "
            "service; "
            "grpc.peer_check and grpc.trusted_proxies decide (docs/security.md)"
        )

    def belongs(self, service: ScopeKey, ip: str) -> bool:
        """Whether `ip` is one of the service's own, whatever the mode."""
        if not ip:
            return False
        pods = self._census.pods_by_ip(ip)
        if any(pod.key.namespace == service.namespace and not pod.ended for pod in pods):
            return True
        return ip in self._proxies or self._under_the_service(service, ip)

    def _under_the_service(self, service: ScopeKey, ip: str) -> bool:
        nodes = {
            pod.node
            for workload in self._census.workloads_of(service)
            for pod in self._census.pods_of(workload.uid)
            if pod.node
        }
        return any(ip in self._census.node_addresses(name) for name in nodes)

    def _tell(self, service: ScopeKey, ip: str, served: bool) -> None:
        key = (service, ip)
        if key in self._told:
            self._told.move_to_end(key)
            return
        self._told[key] = None
        if len(self._told) > TOLD:
            self._told.popitem(last=False)
        self._on_stranger(service, ip, served)
