"""Whether a scenario went as it must: its own expectations, then the rules that hold always.

Every rule is a function from observations to complaints; none of them asks the product. A rule without a
complaint is shown as kept, so that a reader sees what was checked. What must always hold is in
`invariants.py`; here stand the verdict and what a scenario expects for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mindie_ha.demo import takeovers
from mindie_ha.demo.episodes import Episode, episodes
from mindie_ha.demo.expectations import Expect, ExpectedHold, ExpectedRecovery, TaintStory
from mindie_ha.demo.invariants import INVARIANTS
from mindie_ha.demo.observations import Observations
from mindie_ha.model.recoveries import Outcome


@dataclass(frozen=True, slots=True)
class Check:
    """One rule and what was found against it; nothing found means that it was kept."""

    rule: str
    complaints: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether nothing was found against it."""
        return not self.complaints


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of one run."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every rule was kept."""
        return all(check.kept for check in self.checks)


def judge(observations: Observations, expect: Expect) -> Verdict:
    """The verdict on what was seen."""
    seen = episodes(observations)
    rules = {
        "the expected recoveries took place, and no others": _recoveries(observations, seen, expect),
        "every pod of a recovered workload was replaced": _replaced(observations, seen, expect),
        "no other pod was touched": _untouched(observations, expect),
        "the rank tables are as expected": _tables(observations, expect),
        "tables arrived on every channel": _channels(observations, expect),
        "no AscendJob was given up that was not to be": _failed(observations, expect),
        "software retries were paid exactly": _retries(observations, expect),
    }
    optional = {
        "no more recoveries than expected deleted at once": (expect.at_once, _at_once(seen, expect)),
        "nothing was deleted": (expect.nothing_deleted, _nothing_deleted(observations)),
        "we deleted what nobody else did": (
            expect.our_deletions is not None,
            _our_deletions(observations, expect),
        ),
        "a new instance was held back until its peer was there": (expect.held, _held(observations, expect)),
        "the active pods were as expected": (expect.actives, takeovers.complaints(observations, expect)),
        "our taints came and went as expected": (expect.taints, _taints(observations, expect)),
        "people were told as often as expected": (expect.events, _events(observations, expect)),
        "the expected ones wait for a person": (expect.parked, _parked(observations, expect)),
        "the status said so": (expect.status_said, _said(observations, expect)),
        "the status showed these states": (expect.states, _states(observations, expect)),
        "what the steps waited for came": (observations.missed, iter(observations.missed)),
    }
    rules |= {rule: found for rule, (asked, found) in optional.items() if asked}
    checks = [Check(rule, tuple(found)) for rule, found in rules.items()]
    checks += [Check(rule, tuple(find(observations))) for rule, find in INVARIANTS.items()]
    return Verdict(tuple(checks))


def _recoveries(observations: Observations, seen: tuple[Episode, ...], expect: Expect) -> Iterator[str]:
    left = list(seen)
    for wanted in expect.recoveries:
        match = next((each for each in left if each.workload == wanted.workload), None)
        if match is None:
            yield f"{wanted.workload}: no recovery was seen"
            continue
        left.remove(match)
        yield from _differences(match, wanted)
        waited_s = match.opened_s - observations.first_fault_s()
        if waited_s < wanted.after_s:
            yield f"{match.workload}: opened {waited_s:.1f} s after the first fault, not {wanted.after_s:g} s"
        gone_s = min((pod.deleted_s or 0.0 for pod in match.deleted), default=float("inf"))
        waited_s = gone_s - observations.first_fault_s()
        if waited_s < wanted.deletes_after_s:
            yield f"{match.workload}: deleted {waited_s:.1f} s after it, not {wanted.deletes_after_s:g} s"
    for each in left:
        yield f"{each.workload}: unexpected recovery #{each.epoch} ({each.cause}: {each.summary})"


def _differences(episode: Episode, wanted: ExpectedRecovery) -> Iterator[str]:
    who = f"{episode.workload} #{episode.epoch}"
    if episode.outcome != wanted.outcome:
        yield f"{who}: outcome {episode.outcome}, expected {wanted.outcome}"
    if episode.rungs != wanted.rungs:
        yield f"{who}: rungs {', '.join(episode.rungs) or 'none'}, expected {', '.join(wanted.rungs)}"
    if wanted.cause and episode.cause != wanted.cause:
        yield f"{who}: cause {episode.cause}, expected {wanted.cause}"


def _replaced(observations: Observations, seen: tuple[Episode, ...], expect: Expect) -> Iterator[str]:
    fault_s = observations.first_fault_s()
    for wanted in expect.recoveries if not expect.nothing_deleted else ():
        pods = [each for each in observations.pods.values() if each.workload == wanted.workload]
        stood = {pod.uid: pod for pod in pods if pod.here_at(fault_s)}
        before = {uid: pod for uid, pod in stood.items() if pod.key in wanted.only or not wanted.only}
        mine = [each for each in seen if each.workload == wanted.workload]
        deleted = {pod.uid for each in mine for pod in each.deleted}
        for uid in before.keys() - deleted:
            yield f"{before[uid].key} ({uid}) was not deleted"
        for pod in (pod for uid, pod in stood.items() if uid not in before):
            if pod.deleted_s is not None:
                yield f"{pod.key} ({pod.uid}) was deleted at {pod.deleted_s:.1f} s, a peer that was to stay"
        lasting = [pod for pod in observations.members(wanted.workload) if pod.uid not in stood]
        ended = wanted.outcome is Outcome.PARKED or wanted.workload in expect.parked
        if not ended and len(lasting) != len(before):
            yield f"{wanted.workload}: {len(before)} pods before, {len(lasting)} new ones after"


def _untouched(observations: Observations, expect: Expect) -> Iterator[str]:
    moved = {each.workload for each in expect.recoveries}
    for pod in observations.pods.values():
        if pod.workload in moved or not pod.here_at(observations.first_fault_s()):
            continue
        if pod.deleted_s is not None:
            yield f"{pod.key} ({pod.uid}) was deleted at {pod.deleted_s:.1f} s"


def _tables(observations: Observations, expect: Expect) -> Iterator[str]:
    if expect.tables is None:
        return
    digests = list(dict.fromkeys(each.digest for each in observations.tables_since_fault()))
    if len(digests) != expect.tables:
        short = ", ".join(digest[:12] for digest in digests)
        yield f"{len(digests)} different tables since the fault ({short}), expected {expect.tables}"


def _channels(observations: Observations, expect: Expect) -> Iterator[str]:
    for table in observations.tables_since_fault():
        by = {each.channel for each in observations.deliveries if each.digest == table.digest}
        missing = [channel for channel in expect.channels if channel not in by]
        if missing and table is observations.tables[-1]:
            yield f"the newest table (generation {table.generation}) never arrived by {', '.join(missing)}"


def _failed(observations: Observations, expect: Expect) -> Iterator[str]:
    for job in observations.jobs.values():
        if job.failed and job.key not in expect.failed_jobs:
            yield f"AscendJob {job.key} is Failed: {job.failed}"
        if not job.failed and job.key in expect.failed_jobs:
            yield f"AscendJob {job.key} is not Failed"


def _retries(observations: Observations, expect: Expect) -> Iterator[str]:
    for workload in observations.jobs:
        ledger = observations.ledger_of(workload)
        spent = int(ledger.body.get("software_retries_spent", 0)) if ledger is not None else 0
        wanted = expect.retries_spent.get(workload, 0)
        if spent != wanted:
            yield f"{workload}: {spent} software retries were spent, expected {wanted}"


def _held(observations: Observations, expect: Expect) -> Iterator[str]:
    for hold in expect.held:
        yield from _hold_kept(observations, hold)
        yield from _hold_needed(observations, hold)


def _hold_kept(observations: Observations, hold: ExpectedHold) -> Iterator[str]:
    old = {pod.uid for pod in observations.pods.values() if pod.here_at(observations.first_fault_s())}
    for delivery in observations.deliveries:
        groups = observations.groups_of(delivery.text)
        new = [groups.get(name, ("", frozenset()))[1] - old for name in (hold.instance, hold.until)]
        if new[0] and not new[1]:
            yield (
                f"{delivery.peer} got a table at {delivery.at_s:.1f} s with the new pods of {hold.instance}"
                f" but without those of {hold.until}"
            )


def _hold_needed(observations: Observations, hold: ExpectedHold) -> Iterator[str]:
    """The rule is only shown to work where the instance really was complete first."""
    times = []
    for workload in (hold.instance, hold.until):
        names = {name for pod in observations.members(workload) for name in (pod.uid, pod.ip)}
        done = [
            each.at_s
            for each in observations.instance_tables
            if each.workload == workload and each.members & names
        ]
        times.append(min(done, default=float("inf")))
    if not times[0] < times[1]:
        yield f"{hold.instance} was not complete before {hold.until}, so nothing had to be held"


def _said(observations: Observations, expect: Expect) -> Iterator[str]:
    for wanted in expect.status_said:
        if not any(wanted in line for line in observations.said):
            yield f"the status never said {wanted!r}"


def _states(observations: Observations, expect: Expect) -> Iterator[str]:
    for workload, wanted in expect.states.items():
        shown = observations.states.get(workload, set())
        for state in wanted:
            if state not in shown:
                instead = ", ".join(sorted(shown)) or "nothing"
                yield f"the status never showed {workload} {state}, but {instead}"


def _at_once(seen: tuple[Episode, ...], expect: Expect) -> Iterator[str]:
    """From the first deletion to the end; a pod that was deleted counts, not one that was to be."""
    spans = [
        (min(pod.deleted_s or 0.0 for pod in each.deleted), each.closed_s or float("inf"))
        for each in seen
        if each.deleted
    ]
    most = max((sum(a <= begin < b for a, b in spans) for begin, _ in spans), default=0)
    if most != expect.at_once:
        yield f"{most} recoveries deleted and rebuilt at the same time, expected {expect.at_once}"


def _nothing_deleted(observations: Observations) -> Iterator[str]:
    fault_s = observations.first_fault_s()
    for write in observations.writes:
        if write.ours and write.verb.startswith("delete") and write.resource == "pods":
            yield f"we asked to delete {write.name} at {write.at_s:.1f} s, {write.code}"
    for pod in observations.pods.values():
        if pod.here_at(fault_s) and pod.deleted_s is not None:
            yield f"{pod.key} ({pod.uid}) was deleted at {pod.deleted_s:.1f} s"


def _our_deletions(observations: Observations, expect: Expect) -> Iterator[str]:
    sent = [
        write.name
        for write in observations.writes
        if write.ours and write.verb == "delete" and write.resource == "pods" and write.code < 300
    ]
    if len(sent) != expect.our_deletions:
        yield f"we deleted {len(sent)} pods ({', '.join(sent) or 'none'}), expected {expect.our_deletions}"


def _parked(observations: Observations, expect: Expect) -> Iterator[str]:
    for workload in expect.parked:
        ledger = observations.ledger_of(workload)
        if ledger is None or not ledger.body.get("parked"):
            yield f"{workload} is not parked in the end"


def _taints(observations: Observations, expect: Expect) -> Iterator[str]:
    for wanted in expect.taints:
        node = observations.node_was_under(wanted.was_under)
        if not node:
            yield f"{wanted.was_under} was on no node at the first fault"
        elif (found := taint_story(observations, node)) is not wanted.story:
            yield f"our taint on {node}: {found}, expected {wanted.story}"
        elif found is TaintStory.OVERRULED and not _is_recorded(observations, node):
            yield f"that a person took our taint off {node} was not recorded"


def _is_recorded(observations: Observations, node: str) -> bool:
    entries = (entry for each in observations.isolations if each.node == node for entry in each.entries)
    return any(entry.get("overruled_at_s") is not None for entry in entries)


def taint_story(observations: Observations, node: str) -> TaintStory:
    """What became of our taint on a node from the first fault on."""
    history = observations.taint_history(node)
    if not any(each.tainted for each in history):
        return TaintStory.NEVER
    if history[-1].tainted:
        return TaintStory.STANDING
    last_set = max(index for index, each in enumerate(history) if each.tainted)
    by_person = history[last_set + 1].version in observations.by_person
    return TaintStory.OVERRULED if by_person else TaintStory.RELEASED


def _events(observations: Observations, expect: Expect) -> Iterator[str]:
    for wanted in expect.events:
        found = observations.count_events(wanted.reason, wanted.about)
        if found != wanted.times:
            about = f" about a {wanted.about}" if wanted.about else ""
            yield f"Event {wanted.reason}{about}: {found} times, expected {wanted.times}"


__all__ = ["Check", "Verdict", "judge", "taint_story"]
