"""What must never happen, whatever the scenario: one function a rule, from observations to complaints.

The rules are those of the product's own promise (only recorded targets are deleted, no two recoveries of one
workload, only valid tables and never an older one, nothing written while nothing is wrong, marks have owners,
everything is well in the end), judged on what others saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from mindie_ha.demo.observations import Injected, IsolationSeen, NodeSeen, Observations, Write
from mindie_ha.model.ranktables import Severity
from mindie_ha.ranktable.reading import read_global
from mindie_ha.sim.ms.loaders import load

Rule = Callable[[Observations], Iterable[str]]
COORDINATOR = "mindie-ms-coordinator"
CLUSTERS_OWN = "node.kubernetes.io/"


def only_recorded_targets(seen: Observations) -> Iterator[str]:
    """Each of our deletions: the UID stood in the ledger before, and the attempt too."""
    first: dict[str, Write] = {}
    for write in seen.writes:
        if write.verb == "delete" and write.resource == "pods" and write.code < 300:
            first.setdefault(write.uid, write)
        elif write.verb == "deletecollection" and write.ours:
            yield "a whole collection was deleted"
    for uid, write in first.items():
        pod = seen.pods.get(uid)
        if pod is None or pod.deleted_version is None or not write.ours:
            continue  # where somebody else was first, our own delete changed nothing
        before = [
            each
            for each in seen.ledgers
            if each.workload == pod.workload and each.version < pod.deleted_version
        ]
        if not before or uid not in before[-1].targets:
            yield f"{pod.key} ({uid}) was deleted without being a recorded target"
        elif not (before[-1].recovery or {}).get("attempts"):
            yield f"{pod.key} ({uid}) was deleted before its attempt was recorded"


def one_recovery_at_a_time(seen: Observations) -> Iterator[str]:
    """A new epoch only after the last one closed; epochs and spent retries never go back."""
    last: dict[str, tuple[int, bool, int]] = {}
    for ledger in seen.ledgers:
        epoch, spent = ledger.body.get("epoch", 0), ledger.body.get("software_retries_spent", 0)
        before_epoch, was_open, before_spent = last.get(ledger.workload, (0, False, 0))
        if epoch < before_epoch:
            yield f"{ledger.workload}: epoch {before_epoch} was followed by {epoch}"
        if epoch > before_epoch and was_open and before_epoch not in _closed_epochs(ledger.body):
            yield f"{ledger.workload}: recovery {epoch} was opened while {before_epoch} was open"
        if spent < before_spent:
            yield f"{ledger.workload}: spent retries went from {before_spent} back to {spent}"
        last[ledger.workload] = epoch, ledger.recovery is not None, spent


def only_valid_tables(seen: Observations) -> Iterator[str]:
    """Whatever arrived anywhere can be loaded, names servers, and was remembered by its generation."""
    for text, peer in {each.text: each.peer for each in seen.deliveries}.items():
        for finding in read_global(text).findings:
            if finding.severity is Severity.REJECT:
                yield f"{peer} got a table with {finding.where}: {finding.message}"
        loaded = load(text)
        if not loaded.accepted or loaded.zeroed or not loaded.instances:
            yield f"{peer} got a table that MS Controller does not load: {loaded.reason or 'no instance'}"
    known = {each.digest for each in seen.tables}
    for each in seen.deliveries:
        if each.digest not in known:
            yield f"{each.peer} got a table ({each.digest[:12]}) that no ledger remembers"


def never_an_older_table(seen: Observations) -> Iterator[str]:
    """Per receiver, generations never go back."""
    generations: dict[str, list[int]] = {}
    for table in seen.tables:
        generations.setdefault(table.digest, []).append(table.generation)
    last: dict[str, int] = {}
    for each in sorted(seen.deliveries, key=lambda delivery: delivery.at_s):
        mine = generations.get(each.digest, [])
        later = [number for number in mine if number >= last.get(each.peer, 0)]
        if mine and not later:
            yield f"{each.peer} got generation {mine[-1]} after {last[each.peer]}"
        elif later:
            last[each.peer] = min(later)
    for before, after in zip(seen.tables, seen.tables[1:], strict=False):
        if before.service == after.service and after.generation <= before.generation:
            yield f"{after.service}: generation {before.generation} was followed by {after.generation}"


def stable_ids(seen: Observations) -> Iterator[str]:
    """An instance keeps its group id for life."""
    ids: dict[str, str] = {}
    for table in seen.tables:
        for workload, (group_id, _) in seen.groups_of(table.text).items():
            if ids.setdefault(workload, group_id) != group_id:
                was = f"was group {ids[workload]}"
                yield f"{workload} {was} and became {group_id} in generation {table.generation}"


def nothing_on_broken_hardware(seen: Observations) -> Iterator[str]:
    """A pod that came after a fault and stayed holds no faulty card and is on no lost or broken node."""
    for fault in seen.faults:
        if not fault.node or fault.healed_s is not None:
            continue
        for pod in seen.pods.values():
            if pod.created_s <= fault.at_s or pod.deleted_s is not None or pod.node != fault.node:
                continue
            if fault.device and fault.device in pod.devices:
                yield f"{pod.key} was placed on the faulty card {fault.device} of {pod.node}"
            elif fault.closes_node:
                yield f"{pod.key} was placed on {pod.node}, which is {_broken(fault)}"


def marks_have_owners(seen: Observations) -> Iterator[str]:
    """A taint of ours is recorded before it is set, with reason, owner and undo; only those are released."""
    for state in seen.nodes:
        if state.tainted:
            yield from _unowned(seen, state)
    yield from _wrong_releases(seen)


def quiet_when_well(seen: Observations) -> Iterator[str]:
    """Once everything is well, nothing is written (the Lease aside)."""
    if seen.quiet_from_s is None:
        yield "the end was never reached, so nobody could watch for needless writes"
        return
    for write in seen.writes:
        if write.ours and write.at_s > seen.quiet_from_s and not write.resource.startswith("leases"):
            yield f"{write.verb} {write.resource} {write.name} at {write.at_s:.1f} s, {write.code}"


def well_in_the_end(seen: Observations) -> Iterator[str]:
    """Every workload runs with all its pods; parked ones were given up aloud.

    All pods are ready, but of Coordinators the active one only: a standby answers its probe with 503.
    """
    for job in seen.jobs.values():
        ledger = seen.ledger_of(job.key)
        if ledger is not None and ledger.body.get("parked"):
            continue
        members = seen.members(job.key)
        running = [pod for pod in members if pod.phase == "Running"]
        ready, wanted = sum(pod.ready for pod in running), 1 if job.app == COORDINATOR else job.replicas
        if ready < wanted or len(running) != job.replicas or len(members) != job.replicas:
            found = f"{len(members)} of {job.replicas} pods exist, {len(running)} run, {ready} are ready"
            yield f"{job.key}: {found}"
        if ledger is not None and ledger.recovery is not None:
            yield f"{job.key}: a recovery is still open in phase {ledger.recovery['phase']}"


def newest_table_everywhere(seen: Observations) -> Iterator[str]:
    """Every subscriber has the newest table."""
    if not seen.tables:
        yield from ["no table was ever published"] if seen.has_service else []
        return
    newest = seen.tables[-1]
    last = {each.peer: each.digest for each in sorted(seen.deliveries, key=lambda delivery: delivery.at_s)}
    for peer in sorted(seen.subscribers):
        if last.get(peer) != newest.digest:
            yield f"{peer} does not have generation {newest.generation}"


INVARIANTS: Mapping[str, Rule] = {
    "only recorded targets were deleted": only_recorded_targets,
    "one recovery at a time for a workload; no budget grew back": one_recovery_at_a_time,
    "every table that arrived is valid and remembered": only_valid_tables,
    "nobody got an older table": never_an_older_table,
    "group ids are stable": stable_ids,
    "nothing new runs on broken hardware": nothing_on_broken_hardware,
    "every isolation has an owner, a reason and an undo": marks_have_owners,
    "nothing is written while nothing is wrong": quiet_when_well,
    "everything runs again, or is parked": well_in_the_end,
    "everybody has the newest table": newest_table_everywhere,
}


def _closed_epochs(body: Mapping[str, object]) -> set[int]:
    closed = body.get("closed")
    return {each["epoch"] for each in closed} if isinstance(closed, list | tuple) else set()


def _entries_before(seen: Observations, node: str, version: int) -> IsolationSeen | None:
    found = [each for each in seen.isolations if each.node == node and each.version < version]
    return found[-1] if found else None


def _unowned(seen: Observations, state: NodeSeen) -> Iterator[str]:
    recorded = _entries_before(seen, state.node, state.version)
    if recorded is None or not recorded.entries:
        yield f"node {state.node} was tainted at {state.at_s:.1f} s without a record"
        return
    for entry in recorded.entries:
        missing = [key for key in ("wanted_by", "reason", "undo") if not entry.get(key)]
        if missing:
            yield f"the isolation {entry.get('id')} of {state.node} has no {', '.join(missing)}"


def _wrong_releases(seen: Observations) -> Iterator[str]:
    last: dict[str, NodeSeen] = {}
    for state in seen.nodes:
        before = last.get(state.node)
        last[state.node] = state
        if before is None:
            continue
        for key in before.foreign - state.foreign:
            if not key.startswith(CLUSTERS_OWN):
                yield f"the taint {key} of {state.node}, which is not ours, was removed"
        if state.version in seen.by_person:
            continue
        closing = [each for each in seen.faults if each.node == state.node and each.closes_node]
        standing = [each for each in closing if each.stands_at(state.at_s)]
        if before.tainted and not state.tainted and standing:
            still = f"although it is still {_broken(standing[0])}"
            yield f"node {state.node} was released at {state.at_s:.1f} s {still}"


def _broken(fault: Injected) -> str:
    return "lost" if fault.node_lost else f"broken ({fault.kind} {fault.code})"


__all__ = ["INVARIANTS", "Rule"]
