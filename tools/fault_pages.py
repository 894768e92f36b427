"""`docs/faults.md`: what each level does, from the table that decides it, and which inputs are not judged.

The list of vectors that do not apply is checked: `tests/tools/test_fault_page.py` wants each of the
contract's 93 to be named by a test or to stand here with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindie_ha.model.levels import Family
from mindie_ha.policy.effects import EFFECTS

TITLES = {
    Family.CHIP: "Cards",
    Family.NETWORK: "Links of cards (parameter plane)",
    Family.PUBLIC: "Public faults, fused into the list of cards",
    Family.SWITCH: "Switches in a node (A3, A5)",
    Family.NODE: "Boards (NodeD)",
    Family.POD_LABEL: "Pod label `fault-type`",
    Family.POD_STATUS: "Pod annotation `huawei.com/pod-status`",
    Family.RELATION: "Network fault with its trigger",
    Family.NODE_MARK: "Node annotation `NodeHealthyStatus`",
}
INTRODUCTION = """# Faults

<!-- made by `python -m tools.docs`; do not edit -->

Every source is read as it is written on clusters of today, brought to one scale of levels, and judged code
by code: the level of a whole card or node is only a summary, and PreSeparate hides the restart levels in
it.

| Effect | What happens to what runs there |
|---|---|
| record | nothing; the fault is shown |
| by subHealthyStrategy | by the job's label, see *Sub-health* |
| recover when listed | recovery if the writer itself lists the card or node as unhealthy, else recorded |
| recover after its window | recovery when the silence window ends with the fault still there |
| recover at once | recovery, unless the job's own annotation silences it |

The placement column says what a level asks of scheduling. Cards are kept free by the lists of device plugin
and ClusterD, which Volcano reads, and by our taint until they show the card; a node is kept free by our
taint while a recovery wants it. What only asks for closed placement and for no recovery is shown and left
to the scheduler.
"""
RULES = """
## Rules beside the table

* **Sources.** `faults.source: device-plugin` (default) reads `mindx-dl-deviceinfo-*` and
  `mindx-dl-nodeinfo-*`; `clusterd` reads `cluster-info-device-*`, `cluster-info-switch-*` and
  `cluster-info-node-cm` instead. A ConfigMap counts only in the namespace of its writer.
* **Whom a fault hits.** A card's fault hits the pod that holds the card now, by its own annotation and UID;
  virtual and shared names mean their physical card. Faults of a switch, a board or a whole node hit every
  living pod on it.
* **Refused reports.** A report whose CheckCode does not fit, or that cannot be read, changes nothing: the
  last good state stays with the reason and its age, `mindie_ha_inputs_refused_total` counts it. Switch and
  cards of one ConfigMap are judged separately. The key `ManuallySeparateNPU` stands outside the checksum
  and is a person's word: it is shown, and never restarts what runs.
* **Stale reports.** A report older than `faults.report_stale_s` leaves the node unreported: a condition,
  not a fault.
* **No board report is a good report**: NodeD deletes its ConfigMap when the board is well.
* **Levels of codes.** The writer's level for the code; else its level for the object; else the table
  (shipped, or `mindx-dl-fault-config` and `mindx-dl-node-fault-config`). A bad custom table keeps the last
  good one. Of a code in two groups the worse level counts. A changed
  table judges the reports that stand anew, at once.
* **A cluster's own frequency and duration rules** (`faultCustomization.json` in `mindx-dl-fault-config`)
  raise the level of a card's code here too. Occurrences count while somebody holds the card, never for one
  code on two cards of a job within 30 s, and are remembered in the node's ledger over a restart.
  `ManuallySeparateNPU` isolates the card until `mindie-ha release`, which also forgets the count; any other
  level falls after its `ReleaseTimeWindow`. A duration rule raises while the code is there; its
  `RecoverTimeout` is left to the device plugin. The shipped rules are applied by the device plugin alone.
* **A listed card without a cause** acts. So does one whose codes are all harmless: its writer knows more
  than it says.
* **Cards in reset** (`-Recovering`) are no fault until `faults.resetting_s`.
* **Conditions other than Ready, taints, cordons** are no faults.
* **One cause, shown twice** (a card in the device report and in a public fault, a lost node and its cards,
  NodeD and the annotation) is one recovery and one payment. The more certain fault names it: card, public
  fault, node gone, NotReady, board, switch, annotation, correlated faults, then what merely stopped; those
  of the same place are listed as evidence (`also NodeNotReady`). Hardware beside a failed program pays no
  retry.
* **Two cards.** The same code on two or more cards of one job within 30 s is the program's fault: it counts
  towards no manual isolation and pays no retry. The cards are isolated only by levels that are about the
  card itself: `FreeRestartNPU`, `RestartNPU`, `PreSeparateNPU`, `SeparateNPU`, `ManuallySeparateNPU`.
* **Links alone never delete**, whatever their level and the job's strategy.
* **A flapping node**: NotReady that ends within `faults.node_not_ready_s` deletes nothing. Three losses, each
  less than 10 min after the one before, give one Event `NodeFlaps` for the whole streak.
* **An unreported node** is told in `status`, in `/v1/services` (notice `NodeUnreported` of each workload on
  it) and in `/v1/nodes`.

## Sub-health

Label `subHealthyStrategy` of the job:

| Value | What happens |
|---|---|
| absent, `ignore` | recorded |
| `forceExit` | recovery; the card or node is kept free until it is well |
| `graceExit` | recovery with the pods' own grace; training processes are told first (`GracefulExit`) |
| `hotSwitch` | as `ignore`, with Event `HotSwitchNotServed` |
| anything else | as `ignore`, with Event `SubHealthStrategyUnknown` |

## Relation rules

A link fault together with a trigger, on any cards of the same job, gives the link's card (or the switch's
node) `Separate` or `SubHealth`. The rules are ClusterD's: `relationFaultCustomization.json` and
`faultDuration.json`, shipped here and replaced by keys of these names in
`kube-system/mindx-dl-fault-config`. A link fault waits 300 s for its trigger. Over without one: a switch
makes its node sub-healthy, a card's link is forgotten; in an A3 job (annotation `sp-block`) a CQE error
(`8C1F8608`, `4C1F8608`) in that time separates the node, and serves for nothing else. Pods that were created
after the faults met are not hit. The place itself is not tainted: the scheduler reads the link list.

## Silence windows

`huawei.com/schedule.filter.faultCode` and `huawei.com/schedule.filter.faultLevel` on the job (or its
PodGroup) name codes and levels: `80E01801:30, [0x08520003,na,L2,na]` bears the first for 30 s, the second
for 60 s. Full-width commas and colons count. Seconds are whole, 0-86400; anything else means 60. A code's
window decides alone; levels are asked only for codes without one. A server without a level annotation bears
RestartRequest for 60 s. Windows count from our first sight of the code on that card. When one ends with the
fault still there, the fault acts; one that went and came back starts anew. Faults of boards, links, marks
and public faults are never silenced. Unlike in ClusterD the default of servers does not depend on a
Controller being subscribed.

## Known inputs that are not judged here

The other vectors of the fault input contract and their numbers stand in the tests.

| Vector | Why not |
|---|---|
"""
NOT_JUDGED = {
    "V15": "joins codes into ClusterD's output record; we keep one record per card with all its codes",
    "V72": "errors that accompany a UCE are held back for the process layer, which is not served yet",
    "V73": "retry of training processes: belongs to the process layer, which is not served yet",
    "V74": "retry of training processes, as V73",
    "V75": "retry of training processes, as V73",
    "V76": "retry of training processes, as V73",
    "V77": "what ClusterD leaves in its list after a retry filter; we read the list as it comes",
    "V78": "ranks of a training job by code: belongs to the process layer",
    "V79": "ranks of a job on a node without object: our pods are hit by `NodeGone` instead (no rank list)",
    "V80": "health of a job in fault messages, not input: see `mindie_ha/model/health.py`",
    "V92": "health of a card in fault queries, not input: see `mindie_ha/model/health.py`",
    "V93": "health of a node in fault queries, not input: see `mindie_ha/model/health.py`",
}


def family_tables() -> Iterator[str]:
    """One table for each family."""
    for family, rows in EFFECTS.items():
        yield f"\n## {TITLES[family]}\n"
        if family is Family.PUBLIC:
            yield "As cards. Never silenced."
            continue
        yield "| Level | inference instance | MS pod | training job | placement | note |"
        yield "|---|---|---|---|---|---|"
        for level, row in rows.items():
            cells = (row.inference, row.ms, row.training, row.placement, row.note)
            yield f"| {level} | {' | '.join(cells)} |"


def faults_page() -> str:
    """The whole page."""
    reasons = [f"| {vector} | {why} |" for vector, why in NOT_JUDGED.items()]
    return "\n".join((INTRODUCTION.rstrip("\n"), *family_tables(), RULES.rstrip("\n"), *reasons)) + "\n"
