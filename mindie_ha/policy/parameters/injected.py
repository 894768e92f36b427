"""What the Ascend Operator puts into container `ascend`, by framework and strategy (Table 3).

Facts of its code, where its documents say something else too: `exit` is injected like `recover` (documents:
nothing); any text in `recover-strategy`, even one that names nothing known, switches the watchdog off; blanks
are not trimmed, so ` recover` is unknown. Entries are appended behind what the user wrote: of two with one
name the later counts in Kubernetes, so the injected one; an `export` in a script beats both.

Source: rescheduling contract §4.6; training contract §3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mindie_ha.policy.parameters.modes import Framework, Mode, strategies

SERVER_DOMAIN = "clusterd-grpc-svc.mindx-dl.svc.cluster.local"
HIGH_AVAILABILITY = "HIGH_AVAILABILITY"
MS_ENABLE_TFT = "MS_ENABLE_TFT"


@dataclass(frozen=True, slots=True)
class Injection:
    """What one strategy adds. `features` go into HIGH_AVAILABILITY (PyTorch) or MS_ENABLE_TFT (MindSpore)."""

    features: tuple[str, ...] = ()
    process_recover: bool = True
    elastic_agent: bool = True
    restart_in_place: bool = False

    @property
    def switches(self) -> Mapping[str, str]:
        """The variables that are switches."""
        found = {
            "PROCESS_RECOVER": "on" if self.process_recover else "",
            "ELASTIC_PROCESS_RECOVER_ENABLE": "1" if self.elastic_agent else "",
            "ENABLE_RESTART_FAULT_PROCESS": "on" if self.restart_in_place else "",
        }
        return {name: value for name, value in found.items() if value}


NOTHING = Injection(process_recover=False, elastic_agent=False)
INJECTIONS: Mapping[tuple[Framework, Mode], Injection] = MappingProxyType(
    {
        (Framework.PYTORCH, Mode.RECOVER): Injection(("recover",)),
        (Framework.PYTORCH, Mode.RETRY): Injection(("retry",)),
        (Framework.PYTORCH, Mode.IN_PLACE): Injection(("recover",), restart_in_place=True),
        (Framework.PYTORCH, Mode.ELASTIC): Injection(("elastic-training",), elastic_agent=False),
        (Framework.PYTORCH, Mode.DUMP): Injection(("dump",)),
        (Framework.PYTORCH, Mode.EXIT): Injection(("recover",)),  # documents: nothing
        (Framework.PYTORCH, Mode.HOT_SWITCH): Injection(("recover",)),
        (Framework.PYTORCH, Mode.POD): NOTHING,
        (Framework.MINDSPORE, Mode.RECOVER): Injection(("ARF:1",)),
        (Framework.MINDSPORE, Mode.RETRY): Injection(("UCE:1", "HCCE:1")),
        (Framework.MINDSPORE, Mode.IN_PLACE): Injection(("ARF:1",), restart_in_place=True),
        (Framework.MINDSPORE, Mode.ELASTIC): NOTHING,  # not supported, a warning in the operator's log
        (Framework.MINDSPORE, Mode.DUMP): Injection(("TTP:1",)),
        (Framework.MINDSPORE, Mode.EXIT): Injection(("ARF:1",)),  # documents: nothing
        (Framework.MINDSPORE, Mode.HOT_SWITCH): Injection(("ARF:1",)),
        (Framework.MINDSPORE, Mode.POD): Injection(("RSC:1",), process_recover=False, elastic_agent=False),
    }
)

WATCHDOG_OFF: Mapping[Framework, Mapping[str, str]] = MappingProxyType(
    {
        Framework.PYTORCH: {"HCCL_ASYNC_ERROR_HANDLING": "0"},
        Framework.MINDSPORE: {"MINDIO_FOR_MINDSPORE": "1", "MS_ENABLE_THM": "{HCCL_WATCHDOG:0}"},
    }
)
"""Where `recover-strategy` is not empty, whatever it says."""

INFERENCE = ("MINDX_TASK_ID", "APP_TYPE", "MINDX_SERVER_IP", "MINDX_SERVER_DOMAIN")
COMMON = ("MINDX_TASK_ID", "MINDX_SERVER_IP", "MINDX_SERVER_DOMAIN", "HostNetwork", "REPLICA_TYPE")
WITH_CARDS = ("HCCL_LOGIC_SUPERPOD_ID", "ASCEND_VISIBLE_DEVICES")
"""Of a pod with cards: the first where `sp-block` is a number, the second except for virtual cards."""
RENDEZVOUS: Mapping[Framework, tuple[str, ...]] = MappingProxyType(
    {
        Framework.PYTORCH: (
            "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK",
        ),
        Framework.MINDSPORE: (
            "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_ROLE", "MS_NODE_RANK", "MS_SERVER_NUM", "MS_WORKER_NUM",
            "MS_LOCAL_WORKER", "NPU_POD",
        ),
        Framework.TENSORFLOW: (
            "CM_CHIEF_IP", "CM_CHIEF_PORT", "CM_CHIEF_DEVICE", "CM_WORKER_IP", "CM_RANK", "CM_WORKER_SIZE",
            "CM_LOCAL_WORKER",
        ),
    }
)  # fmt: skip
"""How the processes of a job find each other; pods with cards only."""


def recovery_environment(
    framework: Framework, *, recover_strategy: str = "", pod_level: bool = False, hot_switch: bool = False
) -> dict[str, str]:
    """The variables of Table 3 for one job, in a stable order. TensorFlow gets none."""
    if framework not in WATCHDOG_OFF:
        return {}
    modes = [*strategies(recover_strategy)]
    modes += [Mode.HOT_SWITCH] if hot_switch else []
    modes += [Mode.POD] if pod_level else []
    rows = [INJECTIONS[framework, mode] for mode in modes]
    found: dict[str, str] = {}
    for row in rows:
        found |= row.switches
    features = sorted({feature for row in rows for feature in row.features})
    if framework is Framework.PYTORCH and (features or recover_strategy):
        found[HIGH_AVAILABILITY] = ",".join(features)
    if framework is Framework.MINDSPORE and (features or recover_strategy):
        found[MS_ENABLE_TFT] = "{" + ",".join(features) + "}"
    if framework is Framework.MINDSPORE and hot_switch:
        found["MINDIO_FOR_MINDSPORE"] = "1"
    if recover_strategy:
        found |= WATCHDOG_OFF[framework]
    return dict(sorted(found.items()))


def names(framework: Framework | None, *, inference: bool) -> tuple[str, ...]:
    """Every variable that the operator may inject into such a job."""
    if inference:
        return INFERENCE
    found: Iterable[str] = (*COMMON, *WITH_CARDS)
    if framework is not None:
        found = (*found, *RENDEZVOUS[framework])
    return tuple(found)
