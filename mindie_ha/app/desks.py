"""For commands that look, or ask for one thing, without the API of a controller.

Each fills its own caches once, does what is asked and goes. What has to be done to the cluster beyond the
record is left to the controller that runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mindie_ha.app.core import Core
from mindie_ha.app.edges import Edges
from mindie_ha.app.parts import LeadsAlone, writer_of
from mindie_ha.cluster.connections import connect
from mindie_ha.cluster.lease_records import LeaseRecord
from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.cluster.resources import LEASE
from mindie_ha.engine.adoption_desk import AdoptionDesk
from mindie_ha.engine.isolation_desk import IsolationDesk
from mindie_ha.engine.node_ledgers import NodeLedgers
from mindie_ha.engine.pause_desk import PauseDesk
from mindie_ha.engine.rearm_desk import RearmDesk
from mindie_ha.engine.request_desk import RequestDesk
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import silent_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import ClusterError, InputError, NotFound, Unreachable
from mindie_ha.model.ids import ObjectKey, service_key
from mindie_ha.model.settings import Settings
from mindie_ha.web.explanations import Explainer
from mindie_ha.web.fault_reports import FleetFaults
from mindie_ha.web.reports import Overview

UNKNOWN = "unknown"
OBSERVE_TIMEOUT_S = 20.0


@asynccontextmanager
async def looking(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[Core]:
    """Caches filled once, for a command that looks and goes. Raises Unreachable and other ClusterErrors."""
    transport = await connect(str(kubeconfig) if kubeconfig else None)
    try:
        edges = Edges(transport=transport, clock=LoopClock(), entropy=Entropy(), log=silent_log())
        core = Core(settings, edges, metrics=Metrics())
        try:
            core.mirror.start(core.supervisor)
            missing = await core.mirror.wait_synced(timeout_s=OBSERVE_TIMEOUT_S)
            if missing:
                source, reason = next(iter(missing.items()))
                raise Unreachable(f"could not list {source} within {OBSERVE_TIMEOUT_S:g} s: {reason}")
            yield core
        finally:
            await core.supervisor.close()
    finally:
        await transport.close()


async def observe(settings: Settings, *, kubeconfig: Path | None) -> Overview:
    """Look at the cluster once, without a running controller."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        leader, note = await _leader(core)
        return core.reporter.overview().model_copy(update={"leader": leader, "leader_note": note})


async def _leader(core: Core) -> tuple[str, str]:
    """Who holds the Lease and has renewed it in time, and what its record says of that."""
    key = ObjectKey(core.settings.cluster.namespace, core.settings.lease.name)
    try:
        lease = LeaseRecord.read(await core.client.get(LEASE, key))
    except NotFound:
        return "", f"there is no Lease {key}"
    except (ClusterError, InputError) as error:
        return UNKNOWN, f"its Lease cannot be read: {error}"
    if not lease.holder:
        return "", f"Lease {key} is released"
    if lease.renewed_at_s is None:
        return lease.holder, "its Lease does not say when it was renewed"
    age_s = max(0.0, core.clock.wall() - lease.renewed_at_s)
    if age_s > (lease.duration_s or core.settings.lease.duration_s):
        return "", f"{lease.holder} did, and its Lease expired: not renewed for {age_s:.0f} s"
    return lease.holder, f"its Lease was renewed {age_s:.0f} s ago"


async def observe_faults(settings: Settings, *, node: str, kubeconfig: Path | None) -> FleetFaults:
    """Every current fault (of one node, if given), without a running controller."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        if node and not core.fleet.knows(node):
            raise NotFound(f"there is no node {node}", status=404)
        return await core.fleet.faults(node=node)


@asynccontextmanager
async def explainer(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[Explainer]:
    """Who explains from the ledgers and the planner, without a running controller."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        yield core.explainer()


@asynccontextmanager
async def isolation_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[IsolationDesk]:
    """Where isolations are asked for without the API of a controller; the one that runs sets the taint."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledgers = Ledgers(
            store=core.store, writer=writer_of(core, fence=LeadsAlone()), namespace=settings.cluster.namespace
        )
        nodes = NodeLedgers(store=core.store, ledgers=ledgers, clock=core.clock)
        yield IsolationDesk(store=core.store, nodes=nodes, clock=core.clock, settings=settings)


@asynccontextmanager
async def rearm_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[RearmDesk]:
    """Where a parked workload is re-armed without the API of a controller; the one that runs acts on it."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledgers = Ledgers(
            store=core.store, writer=writer_of(core, fence=LeadsAlone()), namespace=settings.cluster.namespace
        )
        yield RearmDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)


@asynccontextmanager
async def request_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[RequestDesk]:
    """Where a recovery is asked for without the API of a controller; the one that runs does it."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        writer = writer_of(core, fence=LeadsAlone())
        ledgers = Ledgers(store=core.store, writer=writer, namespace=settings.cluster.namespace)
        yield RequestDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)


@asynccontextmanager
async def adoption_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[AdoptionDesk]:
    """Where a job is labelled without the API of a controller; the one that runs adopts its PodGroup."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        yield AdoptionDesk(store=core.store, writer=writer_of(core, fence=LeadsAlone()), settings=settings)


@asynccontextmanager
async def pause_desk(settings: Settings, *, kubeconfig: Path | None) -> AsyncIterator[PauseDesk]:
    """Where people pause and resume without the API of a controller; the one that runs obeys."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledgers = Ledgers(
            store=core.store, writer=writer_of(core, fence=LeadsAlone()), namespace=settings.cluster.namespace
        )
        yield PauseDesk(store=core.store, ledgers=ledgers, clock=core.clock, settings=settings)


async def published_table(settings: Settings, service: ObjectKey, *, kubeconfig: Path | None) -> str:
    """The table that a service's ledger says was published last."""
    async with looking(settings, kubeconfig=kubeconfig) as core:
        ledger = core.store.service_ledger(service_key(service.namespace, service.name))
        if ledger is None or not ledger.text:
            raise NotFound(f"no table was published for {service}; `mindie-ha status` says why", status=404)
        return ledger.text
