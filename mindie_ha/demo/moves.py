"""What the steps of a scenario do to the cluster: they break, heal, report and meddle, as others would.

Hardware fails by the annotation that the simulated machines read, a public fault is a labelled ConfigMap as
its producer writes it, a person uses the API like kubectl. Everything that breaks is noted in the
observations at the same moment, for the judges.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mindie_ha.demo import steps
from mindie_ha.demo.journal import TAINT
from mindie_ha.demo.observations import Harm, Injected, Observations, PodLife
from mindie_ha.demo.obstacles import Obstacles
from mindie_ha.demo.stage import Stage
from mindie_ha.demo.stories import Story
from mindie_ha.model.errors import MindieHaError
from mindie_ha.sim.actors.faults import FAULTS, parse_faults
from mindie_ha.sim.actors.pod_runs import EXIT
from mindie_ha.sim.client import ApiError

Object = dict[str, Any]
LOST: Object = {"node": "NotReady"}
OF_MACHINES = (Harm.CARD, Harm.SWITCH, Harm.BOARD, Harm.NODE_LOST, Harm.PROCESS)
PUBLIC_NAMESPACE = "cluster-system"
PUBLIC_LABEL = "mc-consumer-publicfault"


class Moves:
    """Takes steps on a stage. Every method raises MindieHaError where the scenario speaks of what is not."""

    def __init__(self, stage: Stage, *, story: Story) -> None:
        self._stage = stage
        self._story = story
        self._clock = stage.clock
        self._obstacles = Obstacles(stage, story=story)
        self._entries: dict[str, list[Object]] = {}  # node -> what stands in its annotation
        self._public: dict[str, tuple[Object, int]] = {}  # fault id -> fault as reported, messages sent

    async def take(self, step: steps.Step, where: str) -> None:
        """Do what the step says; waits are the play's own."""
        for takes in (self._broke, self._meddled, self._obstacles.take):
            if await takes(step, where):
                return
        await self._mended(step, where)

    # -- what breaks -----------------------------------------------------------------------------------

    async def _broke(self, step: steps.Step, where: str) -> bool:
        match step:
            case steps.Step(chip=steps.ChipFault() as chip):
                await self._break_card(chip, where)
            case steps.Step(switch=steps.SwitchFault() as switch):
                await self._break_switch(switch, where)
            case steps.Step(board=steps.BoardFault() as board):
                await self._break_board(board, where)
            case steps.Step(node_not_ready=steps.NodeFault(under=under, also=also)):
                places = [self._place(pod, where) for pod in (under, *also)]
                await asyncio.gather(*(self._lose(node, pod, where) for node, pod in places))
            case steps.Step(nodes_not_ready=steps.ManyNodes(count=count)):
                await self._lose_many(count, where)
            case steps.Step(flap=steps.Flap() as flap):
                await self._flap(flap, where)
            case steps.Step(exit=steps.Exit() as end):
                await self._exit(end, where)
            case _:
                return False
        return True

    async def _break_card(self, chip: steps.ChipFault, where: str) -> None:
        node, under = self._place(chip.under, where)
        devices = [self._card(chip.under, number, where) for number in chip.cards or (chip.card,)]
        faults = [
            Injected(self._now_s, node, device, chip.code, under, level=chip.level) for device in devices
        ]
        entries = [{"device": device, "code": chip.code, "level": chip.level} for device in devices]
        await self._inject(faults, entries, where)

    async def _break_switch(self, switch: steps.SwitchFault, where: str) -> None:
        node, pod = self._place(switch.under, where)
        if self._stage.scenario.cluster.model != "a3":
            raise MindieHaError(f"{where}: only servers of model a3 have switches")
        fault = Injected(self._now_s, node, "", switch.code, pod, level=switch.level, kind=Harm.SWITCH)
        entry = {"switch": switch.code, "level": switch.level, "chip": switch.chip, "port": switch.port}
        await self._inject([fault], [entry], where)

    async def _break_board(self, board: steps.BoardFault, where: str) -> None:
        node, pod = self._place(board.under, where)
        fault = Injected(self._now_s, node, "", board.code, pod, level=board.level, kind=Harm.BOARD)
        entry = {"board": board.device, "code": board.code, "level": board.level}
        await self._inject([fault], [entry], where)

    async def _lose(self, node: str, pod: str, where: str) -> None:
        fault = Injected(self._now_s, node, "", "NotReady", pod, kind=Harm.NODE_LOST)
        await self._inject([fault], [LOST], where)

    async def _lose_many(self, count: int, where: str) -> None:
        alive = [pod for pod in self._seen.pods.values() if pod.deleted_s is None and pod.node]
        held = Counter(pod.node for pod in alive if pod.devices)
        names = sorted((node.name for node in self._stage.world.nodes), key=lambda name: (-held[name], name))
        if count > len(names):
            raise MindieHaError(f"{where}: the cluster has {len(names)} nodes, not {count}")
        for name in names[:count]:
            under = next((pod.key for pod in alive if pod.node == name), "")
            await self._lose(name, under, where)

    async def _flap(self, flap: steps.Flap, where: str) -> None:
        node, pod = self._place(flap.under, where)
        for _ in range(flap.times):
            await self._lose(node, pod, where)
            await self._clock.sleep(flap.not_ready_s)
            await self._annotate(node, [each for each in self._entries[node] if each != LOST])
            self._healed(lambda fault: fault.kind is Harm.NODE_LOST and fault.node == node)
            self._story.milestone("back", f"{node} reports again")
            await self._clock.sleep(flap.ready_s)

    async def _exit(self, step: steps.Exit, where: str) -> None:
        pod = self._pod(step.pod, where)
        self._note(Injected(self._now_s, pod.node, "", f"exit code {step.code}", pod.key, kind=Harm.PROCESS))
        body = {"metadata": {"annotations": {EXIT: json.dumps({"code": step.code})}}}
        await self._stage.api.patch("Pod", pod.name, pod.namespace, body)

    async def _inject(self, faults: list[Injected], entries: list[Object], where: str) -> None:
        """Let faults of one node stand from the same moment on."""
        node = faults[0].node
        standing = [*self._entries.get(node, []), *entries]
        problems = parse_faults(json.dumps(standing)).problems
        if problems:
            raise MindieHaError(f"{where}: {problems[0]}")
        for fault in faults:
            self._note(fault)
        await self._annotate(node, standing)

    # -- what others do --------------------------------------------------------------------------------

    async def _meddled(self, step: steps.Step, where: str) -> bool:
        match step:
            case steps.Step(public_fault=steps.PublicFault() as report):
                await self._report(report, where)
            case steps.Step(node_deleted=steps.NodeDeleted(under=under)):
                node, pod = self._place(under, where)
                self._note(Injected(self._now_s, node, "", "NodeGone", pod, kind=Harm.NODE_DELETED))
                self._entries.pop(node, None)
                await self._stage.world.delete_node(node)
            case steps.Step(annotate=steps.Mark() as mark):
                await self._mark(mark, where)
            case steps.Step(untaint=steps.NodeWas(was_under=under)):
                await self._untaint(self._node_was(under, where), where)
            case _:
                return False
        return True

    async def _report(self, report: steps.PublicFault, where: str) -> None:
        if report.id in self._public:
            raise MindieHaError(f"{where}: the public fault {report.id} was reported before")
        node, under = self._place(report.under, where)
        cards = [self._card(report.under, number, where) for number in report.cards]
        fault = {
            "faultId": report.id,
            "faultType": report.type,
            "faultCode": report.code,
            "faultTime": int(self._clock.wall() * 1000),
            "assertion": "occur",
            "faultLocation": {},
            "influence": [{"nodeName": node, "deviceIds": [int(card.rpartition("-")[2]) for card in cards]}],
            "description": "reported by a step of a scenario",
        }
        for card in cards:  # who says so stands in the place of a level
            self._note(
                Injected(self._now_s, node, card, report.code, under, level=report.resource, kind=Harm.PUBLIC)
            )
        await self._send(report.id, {**fault, "resource": report.resource}, number=1)

    async def _send(self, fault_id: str, fault: Object, *, number: int) -> None:
        """Write the ConfigMap as a producer does; it stays where it is, only its message changes."""
        self._public[fault_id] = (fault, number)
        message = {
            "id": f"{fault_id}.{number}",
            "timestamp": int(self._clock.wall() * 1000),
            "version": "1.0",
            "resource": fault["resource"],
            "faults": [{key: value for key, value in fault.items() if key != "resource"}],
        }
        name, data = f"public-fault-{fault_id}", {"PublicFault": json.dumps(message)}
        if number > 1:
            await self._stage.api.patch("ConfigMap", name, PUBLIC_NAMESPACE, {"data": data})
            return
        meta = {"name": name, "namespace": PUBLIC_NAMESPACE, "labels": {PUBLIC_LABEL: "true"}}
        await self._stage.api.create("ConfigMap", {"metadata": meta, "data": data})

    async def _mark(self, mark: steps.Mark, where: str) -> None:
        node, pod = self._place(mark.under, where)
        self._note(Injected(self._now_s, node, "", f"{mark.key}={mark.value}", pod, kind=Harm.MARK))
        body = {"metadata": {"annotations": {mark.key: mark.value}}}
        await self._stage.api.patch("Node", node, "", body)

    async def _untaint(self, node: str, where: str) -> None:
        found = await self._stage.api.get("Node", node) or {}
        taints = (found.get("spec") or {}).get("taints") or []
        kept = [taint for taint in taints if taint.get("key") != TAINT]
        if kept == taints:
            raise MindieHaError(f"{where}: our taint is not on {node}")
        self._story.milestone("person", f"takes our taint off {node}")
        answer = await self._stage.api.patch("Node", node, "", {"spec": {"taints": kept or None}})
        self._seen.by_person.add(int(answer["metadata"]["resourceVersion"]))

    # -- what gets well --------------------------------------------------------------------------------

    async def _mended(self, step: steps.Step, where: str) -> None:
        match step:
            case steps.Step(heal="all"):
                await self._heal()
            case steps.Step(repair=steps.NodeWas(was_under=under)):
                await self._repair(self._node_was(under, where))
            case steps.Step(public_fault_over=str(fault_id)):
                await self._over(fault_id, where)
            case steps.Step(node_returns=steps.NodeWas(was_under=under)):
                node = self._node_was(under, where)
                await self._stage.world.return_node(node)
                self._healed(lambda fault: fault.kind is Harm.NODE_DELETED and fault.node == node)
                self._story.milestone("back", f"{node} is registered again")

    async def _heal(self) -> None:
        for node in self._entries:
            await self._annotate(node, [])
        self._healed(lambda fault: fault.kind in OF_MACHINES)
        self._story.milestone("healed", "every fault of the machines is taken away")

    async def _repair(self, node: str) -> None:
        await self._annotate(node, [])
        self._healed(lambda fault: fault.node == node and fault.kind in OF_MACHINES)
        self._story.milestone("healed", f"every fault of {node} is taken away")

    async def _over(self, fault_id: str, where: str) -> None:
        if fault_id not in self._public:
            raise MindieHaError(f"{where}: no public fault {fault_id} was reported")
        fault, number = self._public[fault_id]
        await self._send(fault_id, {**fault, "assertion": "recover"}, number=number + 1)
        [place] = fault["influence"]
        self._healed(lambda one: one.kind is Harm.PUBLIC and one.node == place["nodeName"])
        self._story.milestone("healed", f"{fault['resource']} says that {fault_id} is over")

    # -- names and notes -------------------------------------------------------------------------------

    @property
    def _seen(self) -> Observations:
        return self._stage.journal.observations

    @property
    def _now_s(self) -> float:
        return self._clock.monotonic()

    def _note(self, fault: Injected) -> None:
        self._seen.faults.append(fault)
        self._story.broken(fault)

    def _healed(self, which: Callable[[Injected], bool]) -> None:
        self._seen.faults[:] = [
            replace(each, healed_s=self._now_s) if each.healed_s is None and which(each) else each
            for each in self._seen.faults
        ]

    async def _annotate(self, node: str, entries: list[Object]) -> None:
        self._entries[node] = entries
        text = json.dumps(entries) if entries else None
        try:
            await self._stage.api.patch("Node", node, "", {"metadata": {"annotations": {FAULTS: text}}})
        except ApiError as error:
            raise MindieHaError(f"node {node}: {error}") from None

    def _pod(self, key: str, where: str) -> PodLife:
        for pod in self._seen.pods.values():
            if pod.key == key and pod.deleted_s is None and pod.node:
                return pod
        raise MindieHaError(f"{where}: there is no pod {key} on a node")

    def _place(self, key: str, where: str) -> tuple[str, str]:
        """The node under a pod and the pod; of a pod that waits for a place the node before, and no pod."""
        placed = self._seen.placed(key)
        if placed is None:
            raise MindieHaError(f"{where}: no pod {key} was ever on a node")
        return placed.node, placed.key if placed.deleted_s is None else ""

    def _card(self, key: str, number: int, where: str) -> str:
        placed = self._seen.placed(key)
        devices = placed.devices if placed is not None else ()
        if number > len(devices):
            raise MindieHaError(f"{where}: {key} holds {len(devices)} cards, so there is no card {number}")
        return devices[number - 1]

    def _node_was(self, key: str, where: str) -> str:
        node = self._seen.node_was_under(key)
        if not node:
            raise MindieHaError(f"{where}: {key} was on no node when the first fault was set")
        return node


__all__ = ["Moves"]
