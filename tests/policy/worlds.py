"""A tiny world for the planner: it applies what a plan says, and plays the others deterministically.

One `turn` lets everybody else do what is due: deleted pods go, the operator re-creates, the scheduler
places, the kubelet starts, the operator writes `hccl.json`, the fused list catches up. `look` plans once,
checks what must never happen, writes the ledgers (as JSON, as a restart would read them) and acts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from mindie_ha.intake.collect import collect
from mindie_ha.model.decisions import (
    Action,
    AdoptPodGroup,
    AskRejoin,
    Decision,
    DeletePod,
    DiscountIsolation,
    GrantRetries,
    IsolateNode,
    LabelPod,
    Notice,
    Plan,
    TellExit,
)
from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey, PodUID, service_key
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.nodes import TAINT_ISOLATED, DeviceReport, ListedDevices, Node, Taint
from mindie_ha.model.pauses import Pauses
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.recoveries import Phase
from mindie_ha.model.reset_configs import RESET_CONFIG_PREFIX
from mindie_ha.model.roles import Activity, PodRole, Streams
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import FleetView, NodeView, ScopeView, TableView, WorkloadView
from mindie_ha.model.workloads import PodGroup, RingsConfig, Role, Workload
from mindie_ha.policy import isolating
from mindie_ha.policy.isolations import plan_node
from mindie_ha.policy.planner import plan
from tests.policy.inhabitants import Job, Machine
from tests.policy.instance_tables import hccl

NAMESPACE = "mindie"
JOB_ID = "svc"
CARDS = 8
START_S = 1_000_000.0


class World:
    """See the module. Switches: `recreates`, `schedules`, `starts`, `tabulates`, `lists`."""

    def __init__(self, *, nodes: int = 6, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.now_s = START_S
        self.machines = {
            f"n{i}": Machine(Node(name=f"n{i}", uid=f"node-{i}", addresses=(f"10.0.0.{i + 1}",)))
            for i in range(nodes)
        }
        self.jobs: dict[ObjectKey, Job] = {}
        self.pods: dict[PodUID, Pod] = {}
        self.table = ServiceLedger(namespace=NAMESPACE, job_id=JOB_ID)
        self.fleet = FleetView(nodes=nodes, ready=nodes)
        self.recreates = self.schedules = self.starts = self.tabulates = self.lists = True
        self.ends = True  # the kubelet ends pods that are being deleted
        self.accepts = True  # the API server accepts deletions
        self.untabulated: set[str] = set()  # jobs whose hccl.json the operator does not write now
        self.pins: dict[str, frozenset[str]] = {}  # pod name -> the nodes it may be on
        self.judges: list[Callable[[Plan], None]] = []
        self.pauses = Pauses()
        self.subscribers = 1
        self.probes = True
        self.activity: dict[str, Activity] = {}  # pod name -> what it says of itself
        self.healthy: bool | None = True  # what MS pods say of their health
        self.streams = Streams()
        self.generations: list[ServiceLedger] = []
        self.deleted: list[DeletePod] = []
        self.decisions: list[Decision] = []
        self.notices: list[Notice] = []
        self.writes = 0
        self._uids = 0

    # --- setting up ---

    def add(
        self,
        name: str,
        *,
        role: Role = Role.SERVER,
        pd_role: PdRole = PdRole.UNKNOWN,
        replicas: int = 2,
        cards: int = 4,
        labels: dict[str, str] | None = None,
        restart_policy: str = "Never",
        deploy: str = "1",
    ) -> Job:
        """A job whose pods do not exist yet."""
        key = ObjectKey(NAMESPACE, name)
        uid = f"job-{name}"
        workload = Workload(
            key=key,
            uid=uid,
            kind="AscendJob",
            role=role,
            pd_role=pd_role,
            job_id=JOB_ID,
            replicas=replicas,
            restart_policy=restart_policy,
            labels={"fault-scheduling": "force", **(labels or {})},
            table_config_map="global-ranktable",
        )
        rings = None
        if role is Role.SERVER:
            rings_key = ObjectKey(NAMESPACE, f"rings-config-{name}")
            rings = RingsConfig(rings_key, '{"status":"initializing"}', {"grt-group/deploy-server": deploy})
        job = Job(
            workload=workload,
            cards=0 if role in (Role.CONTROLLER, Role.COORDINATOR) else cards,
            ledger=WorkloadLedger(workload=f"AscendJob/{key}", workload_uid=uid),
            podgroup=PodGroup(workload.podgroup, f"pg-{name}", "Running"),
            rings=rings,
        )
        self.jobs[key] = job
        return job

    def job(self, name: str) -> Job:
        """The job called `name`."""
        return self.jobs[ObjectKey(NAMESPACE, name)]

    def pods_of(self, name: str) -> list[Pod]:
        """Its pod objects by name."""
        owner = self.job(name).workload.uid
        return sorted((pod for pod in self.pods.values() if pod.owner_uid == owner), key=lambda pod: pod.key)

    def change(self, pod: Pod, **fields: object) -> Pod:
        """Replace fields of a pod."""
        self.pods[pod.uid] = replace(pod, **fields)  # type: ignore[arg-type]
        return self.pods[pod.uid]

    def break_card(self, pod: Pod, index: int = 0) -> str:
        """A card of `pod` becomes unhealthy."""
        device = pod.devices[index]
        self.machines[pod.node].bad.add(device)
        return device

    def lose_node(self, name: str) -> None:
        """The node is NotReady since now."""
        machine = self.machines[name]
        machine.node = replace(machine.node, ready=False, not_ready_since_s=self.now_s)

    def heal_node(self, name: str) -> None:
        """The node is Ready again."""
        machine = self.machines[name]
        machine.node = replace(machine.node, ready=True, not_ready_since_s=None)

    def fail(self, pod: Pod, *, exit_code: int = 1) -> None:
        """The pod's program ends."""
        self.change(pod, phase=PodPhase.FAILED, exit_code=exit_code, ready=False)

    # --- looking ---

    def node_view(self, name: str) -> NodeView:
        """A node as the store would show it."""
        machine = self.machines[name]
        listed = None if machine.listed is None else ListedDevices(name, frozenset(machine.listed))
        return NodeView(
            node=machine.node,
            report=DeviceReport(name, unhealthy=frozenset(machine.bad)),
            listed=listed,
            ledger=machine.ledger,
        )

    def view(self) -> ScopeView:
        """What the planner sees."""
        nodes = {name: self.node_view(name) for name in self.machines}
        device_faults = {name: self._device_faults(name) for name in self.machines}
        workloads = []
        for job in self.jobs.values():
            pods = tuple(self.pods_of(job.workload.key.name))
            collected = collect(
                workload=job.workload,
                pods=pods,
                nodes=nodes,
                device_faults=device_faults,
                ledger=job.ledger,
                settings=self.settings,
                now_s=self.now_s,
            )
            workloads.append(
                WorkloadView(
                    workload=job.workload,
                    pods=pods,
                    ledger=job.ledger,
                    podgroup=job.podgroup,
                    rings=job.rings,
                    faults=collected.faults,
                    remarks=collected.remarks,
                    retry_times=job.retry_times,
                    reset=job.reset,
                    roles=self._roles(pods),
                )
            )
        return ScopeView(
            scope=service_key(NAMESPACE, JOB_ID),
            workloads=tuple(workloads),
            nodes=nodes,
            fleet=replace(self.fleet, open=sum(one.node.open for one in self.machines.values())),
            table=TableView(ledger=self.table, subscribers=self.subscribers),
            pauses=self.pauses,
            streams=self.streams,
        )

    def _roles(self, pods: tuple[Pod, ...]) -> dict[PodUID, PodRole]:
        """What the MS pods among `pods` are, where the test says so."""
        named = [pod for pod in pods if pod.key.name in self.activity]
        return {
            pod.uid: PodRole(self.activity[pod.key.name], "as told", START_S, self.healthy) for pod in named
        }

    def look(self, *, cut: bool = False) -> Plan:
        """Plan once, write, and act; `cut`: we die between writing and acting."""
        result = plan(self.view(), self.settings, self.now_s)
        for judge in self.judges:
            judge(result)
        for decision in result.decisions:
            self._check(decision)
            self._write(decision)
        if result.table is not None:
            assert result.table.ledger.generation >= self.table.generation
            if result.table.ledger != self.table:
                self.writes += 1
                self.table = ServiceLedger.model_validate_json(result.table.ledger.model_dump_json())
            if result.table.publish:
                self.generations.append(self.table)
            self.notices += result.table.notices
        if not cut:
            for decision in result.decisions:
                for action in decision.actions:
                    self._act(action)
            self._plan_nodes()
        return result

    def settle(self, *, until: Callable[[], bool] | None = None, for_s: float = 600.0) -> None:
        """Look and turn until `until` holds, or `for_s` passed."""
        end_s = self.now_s + for_s
        while self.now_s < end_s and not (until and until()):
            self._look_until_quiet()
            self.turn()
            self.now_s += 1.0

    def start(self) -> None:
        """Everything runs, is adopted and published; counters start anew."""
        self.settle(for_s=30.0)
        self.deleted.clear()
        self.decisions.clear()
        self.notices.clear()
        self.writes = 0

    def phase_of(self, name: str) -> Phase | None:
        """The phase of its open recovery."""
        return recovery.phase if (recovery := self.job(name).ledger.recovery) else None

    def closed(self, name: str) -> bool:
        """Whether it had a recovery and has none open."""
        ledger = self.job(name).ledger
        return ledger.recovery is None and bool(ledger.closed)

    def groups(self) -> list[list[str]]:
        """Addresses by group of the published table."""
        table = json.loads(self.table.text)
        return [[item["server_ip"] for item in group["server_list"]] for group in table["server_group_list"]]

    # --- the others ---

    def turn(self) -> None:
        """Everybody else does what is due."""
        self._end()
        for job in self.jobs.values():
            if self.recreates and not job.workload.failed:
                self._recreate(job)
            if self.schedules:
                self._schedule(job)
        if self.starts:
            self._run()
        if self.tabulates:
            for job in self.jobs.values():
                self._tabulate(job)
        for machine in self.machines.values():
            if self.lists and machine.listed is not None:
                machine.listed = set(machine.bad)

    def _end(self) -> None:
        if not self.ends:
            return
        for pod in list(self.pods.values()):
            lost = not self.machines[pod.node].node.ready if pod.node else False
            if pod.terminating and not pod.finalizers and (pod.grace_s == 0 or not lost):
                del self.pods[pod.uid]

    def _look_until_quiet(self) -> None:
        for _ in range(20):
            before = (self.writes, len(self.deleted))
            self.look()
            if before == (self.writes, len(self.deleted)):
                return
        raise AssertionError("the planner never comes to rest")

    def _recreate(self, job: Job) -> None:
        present = {pod.key.name for pod in self.pods_of(job.workload.key.name)}
        for index in range(job.workload.replicas):
            name = f"{job.workload.key.name}-{index}"
            if name in present:
                continue
            self._uids += 1
            job.created += 1
            uid = PodUID(f"00000000-0000-4000-8000-{self._uids:012d}")
            self.pods[uid] = Pod(
                key=ObjectKey(NAMESPACE, name),
                uid=uid,
                owner_uid=job.workload.uid,
                rank=index,
                has_readiness_probe=self.probes,
                placement=",".join(sorted(self.pins.get(name, ()))),
                created_at_s=self.now_s,
                job_id=JOB_ID,
            )

    def _schedule(self, job: Job) -> None:
        pods = self.pods_of(job.workload.key.name)
        if any(pod.terminating for pod in pods):
            return
        for pod in pods:
            if not pod.node and pod.alive:
                self._place(pod, job.cards)

    def _place(self, pod: Pod, cards: int) -> None:
        for name, machine in self.machines.items():
            if not machine.node.open or name not in self.pins.get(pod.key.name, frozenset(self.machines)):
                continue
            if not cards and any(
                other.node == name and other.owner_uid == pod.owner_uid for other in self.pods.values()
            ):
                continue  # replicas of an MS role stand apart
            taken = {device for other in self.pods.values() if other.node == name for device in other.devices}
            avoided = taken | (machine.bad if machine.listed is None else machine.listed)
            free = [f"Ascend910-{i}" for i in range(CARDS) if f"Ascend910-{i}" not in avoided]
            if len(free) >= cards:
                self.put(pod, name, free[:cards])
                return
        why = "" if cards else ": 1 node(s) didn't match pod anti-affinity rules"
        self.change(pod, unschedulable=f"0/{len(self.machines)} nodes are available{why}")

    def put(self, pod: Pod, node: str, devices: list[str]) -> None:
        """Bind a pod."""
        host = self.machines[node].node.addresses[0]
        self.change(pod, node=node, host_ip=host, devices=tuple(devices), unschedulable="")

    def _run(self) -> None:
        for pod in list(self.pods.values()):
            if pod.node and pod.phase is PodPhase.PENDING and self.machines[pod.node].node.ready:
                number = int(pod.uid[-6:])
                self.change(
                    pod,
                    phase=PodPhase.RUNNING,
                    ip=f"10.1.{number // 250}.{number % 250 + 1}",
                    ready=self.probes,
                    started_at_s=self.now_s,
                )

    def _tabulate(self, job: Job) -> None:
        if job.rings is None or job.workload.key.name in self.untabulated:
            return
        pods = [pod for pod in self.pods_of(job.workload.key.name) if pod.alive and pod.ip]
        text = '{"status":"initializing"}'
        if len(pods) == job.workload.replicas:
            text = json.dumps(hccl(pods))
        if text != job.rings.text:
            job.rings = replace(job.rings, text=text, changed_at_s=self.now_s)

    def _device_faults(self, name: str) -> tuple[Fault, ...]:
        told = tuple(self.machines[name].faults)
        return told + tuple(
            Fault(
                source=FaultSource.DEVICE,
                cause=Cause.CHIP_UNHEALTHY,
                node=name,
                device=device,
                codes=("80E18005",),
                first_seen_s=self.now_s,
            )
            for device in sorted(self.machines[name].bad)
        )

    # --- what a plan does ---

    def _check(self, decision: Decision) -> None:
        before = self.jobs[decision.workload].ledger
        after = decision.ledger
        assert after.epoch >= before.epoch
        assert after.software_retries_spent >= before.software_retries_spent
        deadline_s = recovery.deadline_s if (recovery := after.recovery) is not None else None
        assert not deadline_s or deadline_s <= self.now_s or (decision.wake_at_s or 1e12) <= deadline_s
        for action in decision.actions:
            if isinstance(action, DeletePod):
                assert recovery is not None
                assert recovery.phase in (Phase.STOP, Phase.GONE)
                assert action.uid in {target.uid for target in recovery.targets}
            if isinstance(action, IsolateNode):
                assert recovery is not None
                refs = {mark.ref for mark in recovery.obligations}
                assert f"{action.node}/{action.isolation.id}" in refs

    def _write(self, decision: Decision) -> None:
        self.decisions.append(decision)
        self.notices += decision.notices
        job = self.jobs[decision.workload]
        if decision.ledger != job.ledger:
            self.writes += 1
            job.ledger = WorkloadLedger.model_validate_json(decision.ledger.model_dump_json())
            assert job.ledger == decision.ledger

    def _act(self, action: Action) -> None:
        match action:
            case DeletePod():
                self._delete(action)
            case IsolateNode():
                self._isolate(action)
            case DiscountIsolation(node=node, isolation_id=isolation_id, by=by):
                ledger = self.machines[node].ledger
                assert ledger is not None
                self.machines[node].ledger = isolating.discounted(ledger, isolation_id, by=by)
            case AdoptPodGroup():
                job = next(job for job in self.jobs.values() if job.podgroup.uid == action.uid)
                job.podgroup = replace(job.podgroup, annotations={"ProcessRecoverStrategy": "mindie-ha"})
            case AskRejoin(key=key) | TellExit(key=key):
                self.job(key.name.removeprefix(RESET_CONFIG_PREFIX)).hear(action)
            case LabelPod(uid=uid, name=label, value=value):
                self.labelled(uid, label, value)
            case GrantRetries():
                job = next(job for job in self.jobs.values() if job.workload.uid == action.job_uid)
                job.retry_times = action.times

    def labelled(self, uid: PodUID, label: str, value: str | None) -> None:
        """The pod carries the label, or no longer."""
        labels = {**self.pods[uid].labels, label: value or ""}
        self.change(self.pods[uid], labels={name: text for name, text in labels.items() if text})

    def _delete(self, action: DeletePod) -> None:
        self.deleted.append(action)
        pod = self.pods.get(action.uid)
        if pod is None or not self.accepts:
            return
        if action.grace_s == 0 and not pod.finalizers:
            del self.pods[pod.uid]
        else:
            grace_s = pod.termination_grace_s if action.grace_s is None else 0
            self.change(pod, terminating_since_s=self.now_s, grace_s=grace_s)

    def _isolate(self, action: IsolateNode) -> None:
        machine = self.machines[action.node]
        ledger = machine.ledger or NodeLedger(node=action.node, node_uid=action.node_uid)
        machine.ledger = isolating.merged(ledger, action.isolation)
        self._taint(machine, on=True)

    def _taint(self, machine: Machine, *, on: bool) -> None:
        taints = (Taint(TAINT_ISOLATED, "NoSchedule"),) if on else ()
        machine.node = replace(machine.node, taints=taints)

    def _plan_nodes(self) -> None:
        wanted = frozenset(
            f"recovery:{job.workload.key}#{job.ledger.recovery.epoch}"
            for job in self.jobs.values()
            if job.ledger.recovery
        )
        for name, machine in self.machines.items():
            decision = plan_node(
                self.node_view(name), wanted=wanted, settings=self.settings, now_s=self.now_s
            )
            if decision.changed:
                self.writes += 1
                machine.ledger = NodeLedger.model_validate_json(decision.ledger.model_dump_json())
                self._taint(machine, on=decision.tainted)
            self.notices += decision.notices


def service(**kwargs: object) -> World:
    """One prefill and one decode of two pods, with Controller and Coordinator, running and published."""
    world = World(**kwargs)  # type: ignore[arg-type]
    world.add("p0", pd_role=PdRole.PREFILL, deploy="0")
    world.add("d0", pd_role=PdRole.DECODE, deploy="1")
    world.add("ms-controller", role=Role.CONTROLLER, replicas=1)
    world.add("ms-coordinator", role=Role.COORDINATOR, replicas=1)
    world.start()
    return world
