"""Where the pods of one gang go (pure).

All pending pods of a group are placed together or not at all (down to its minimum). A pod takes its previous
node when it can, else the node with the fewest free cards that still fit, so that nodes fill up one after
the other; a pod without cards goes where the least is. Ties go by name, so a run repeats exactly. Which cards
are usable was decided before: `Machine` lists only healthy ones that no pod holds.

A super-pod job is cut into blocks of `block` consecutive pods; each stays inside one physical super pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mindie_ha.sim.actors.documents import items, mapping, selects, text
from mindie_ha.sim.actors.node_lifecycles import tolerates
from mindie_ha.sim.client import Object

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Guest:
    """A pod as placement sees it."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    spec: Object
    cards: int = 0

    @property
    def repelled(self) -> list[Object]:
        """The required anti-affinity terms."""
        path = ("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        return items(self.spec, *path)


@dataclass(frozen=True, slots=True)
class Machine:
    """A node as placement sees it. `refusal` says why nothing new may come, "" if it may."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Object, ...] = ()
    refusal: str = ""
    free: tuple[str, ...] = ()
    guests: tuple[Guest, ...] = ()
    super_pod: int = -2


@dataclass(frozen=True, slots=True)
class Gang:
    """The pending pods of one group, in rank order. `block` 0: super pods do not matter."""

    pods: tuple[Guest, ...]
    need: int
    previous: Mapping[str, str] = field(default_factory=dict)
    block: int = 0
    fixed: Mapping[int, int] = field(default_factory=dict)
    """Block index to the super pod where members of it already run."""
    positions: Mapping[str, int] = field(default_factory=dict)
    """Pod name to its place in the whole gang; decides its block."""

    def block_of(self, pod: Guest) -> int:
        """Index of the pod's block; one for all where super pods do not matter."""
        return self.positions.get(pod.name, 0) // self.block if self.block else 0


@dataclass(frozen=True, slots=True)
class Seat:
    """A node and the cards on it."""

    node: str
    cards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Seats by pod name; empty where the gang has to wait, and why each pod does."""

    seats: Mapping[str, Seat]
    refusals: Mapping[str, str]


class _Board:
    """The nodes while seats are being given out."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.machines = machines
        self.free = {machine.name: list(machine.free) for machine in machines}
        self.guests = {machine.name: list(machine.guests) for machine in machines}
        self.seats: dict[str, Seat] = {}

    def seat(self, pod: Guest, machine: Machine) -> None:
        cards = tuple(self.free[machine.name][: pod.cards])
        del self.free[machine.name][: pod.cards]
        self.guests[machine.name].append(pod)
        self.seats[pod.name] = Seat(machine.name, cards)

    def unseat(self, pods: Iterable[Guest]) -> None:
        for pod in pods:
            seat = self.seats.pop(pod.name, None)
            if seat is not None:
                self.free[seat.node] = list(seat.cards) + self.free[seat.node]
                self.guests[seat.node].remove(pod)

    def preference(self, pod: Guest, machine: Machine) -> tuple[int, int, str, int]:
        """Smaller is better: cards fill nodes up, pods without cards keep out of the way."""
        free, crowd = len(self.free[machine.name]), len(self.guests[machine.name])
        head = machine.name.rstrip("0123456789")
        order = (head, int(machine.name[len(head) :] or 0))
        return (free, crowd, *order) if pod.cards else (crowd, -free, *order)

    def why_not(self, pod: Guest, machine: Machine) -> str:
        """Why this pod cannot sit there now, "" if it can."""
        reason = machine.refusal or _static_refusal(pod, machine)
        if reason:
            return reason
        if len(self.free[machine.name]) < pod.cards:
            return "Insufficient healthy NPUs"
        if self._repelled(pod, machine):
            return "node(s) didn't match pod anti-affinity rules"
        return ""

    def _repelled(self, pod: Guest, machine: Machine) -> bool:
        for other in self.machines:
            for guest in self.guests[other.name]:
                for here, there in ((pod, guest), (guest, pod)):
                    if any(_term_hits(term, here, there, machine, other) for term in here.repelled):
                        return True
        return False


def place(gang: Gang, machines: Sequence[Machine]) -> Placement:
    """Seat the gang, or say why it has to wait."""
    for previous in (gang.previous, {}):
        board = _Board(machines)
        for index in sorted({gang.block_of(pod) for pod in gang.pods}):
            members = [pod for pod in gang.pods if gang.block_of(pod) == index]
            _seat_block(board, members, previous, gang, index)
        if len(board.seats) == len(gang.pods) or not previous:
            break
    if len(board.seats) >= max(1, gang.need):
        return Placement(board.seats, _refusals(board, gang))
    missing = _refusals(board, gang)
    waiting = {pod.name: missing.get(pod.name, "waits for the rest of its gang") for pod in gang.pods}
    return Placement({}, waiting)


def _refusals(board: _Board, gang: Gang) -> dict[str, str]:
    return {pod.name: explain(board, pod) for pod in gang.pods if pod.name not in board.seats}


def explain(board: _Board, pod: Guest) -> str:
    """The scheduler's sentence for one pod that found no node."""
    reasons = Counter(board.why_not(pod, machine) or "super pod too small" for machine in board.machines)
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return f"0/{len(board.machines)} nodes are available: {listed or 'no nodes'}."


def _seat_block(
    board: _Board, members: list[Guest], previous: Mapping[str, str], gang: Gang, index: int
) -> None:
    if not gang.block:
        _seat_all(board, members, previous, board.machines)
        return
    fixed = gang.fixed.get(index)
    for super_pod in _super_pods(board, members, previous, fixed):
        _seat_all(board, members, previous, [m for m in board.machines if m.super_pod == super_pod])
        if all(pod.name in board.seats for pod in members):
            return
        board.unseat(members)


def _super_pods(
    board: _Board, members: list[Guest], previous: Mapping[str, str], fixed: int | None
) -> list[int]:
    """Super pods in the order to try: where siblings are, where the block was, the fullest first."""
    if fixed is not None:
        return [fixed]
    homes = {machine.name: machine.super_pod for machine in board.machines}
    former = Counter(homes[previous[pod.name]] for pod in members if previous.get(pod.name) in homes)
    room: Counter[int] = Counter()
    for machine in board.machines:
        if machine.super_pod >= 0:
            room[machine.super_pod] += len(board.free[machine.name])
    return sorted(room, key=lambda super_pod: (-former[super_pod], room[super_pod], super_pod))


def _seat_all(
    board: _Board, pods: list[Guest], previous: Mapping[str, str], machines: Sequence[Machine]
) -> None:
    by_name = {machine.name: machine for machine in machines}
    later = []
    # Those who can go home do so first, so that nobody else takes their node.
    for pod in pods:
        home = by_name.get(previous.get(pod.name, ""))
        if home is not None and not board.why_not(pod, home):
            board.seat(pod, home)
        else:
            later.append(pod)
    for pod in later:
        fitting = [machine for machine in machines if not board.why_not(pod, machine)]
        if fitting:
            board.seat(pod, min(fitting, key=lambda m: board.preference(pod, m)))


def _static_refusal(pod: Guest, machine: Machine) -> str:
    selector = mapping(pod.spec, "nodeSelector")
    if any(machine.labels.get(key) != value for key, value in selector.items()) or not _affine(pod, machine):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in machine.taints:
        if text(taint, "effect") in {"NoSchedule", "NoExecute"} and not any(
            tolerates(toleration, taint) for toleration in items(pod.spec, "tolerations")
        ):
            return f"node(s) had untolerated taint {{{taint.get('key')}}}"
    return ""


def _affine(pod: Guest, machine: Machine) -> bool:
    required = mapping(pod.spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = items(required, "nodeSelectorTerms")
    return not terms or any(selects(term, dict(machine.labels)) for term in terms)


def _term_hits(term: Object, who: Guest, other: Guest, machine: Machine, other_machine: Machine) -> bool:
    """Whether an anti-affinity term of `who` keeps it apart from `other` on these two nodes."""
    key = text(term, "topologyKey") or HOSTNAME
    domain = machine.labels.get(key)
    if domain is None or other_machine.labels.get(key) != domain:
        return False
    listed = term.get("namespaces")
    namespaces = listed if isinstance(listed, list) and listed else [who.namespace]
    return other.namespace in namespaces and selects(mapping(term, "labelSelector"), dict(other.labels))


__all__ = ["HOSTNAME", "Gang", "Guest", "Machine", "Placement", "Seat", "explain", "place"]
