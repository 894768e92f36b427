"""Which mode is supported on which product, for which framework, since which version.

`smp_excluded`: an Atlas 800 training server whose cards work in SMP mode and whose pods have one or two of
them is not rescheduled. The working mode stands in the server's iBMC, not in Kubernetes: lint only warns.

Source: training contract §5; documentation of job-level rescheduling, Table 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.policy.parameters.modes import Framework, Mode


class Family(StrEnum):
    """Generation of a product."""

    TRAINING = "Atlas training products"
    A2 = "Atlas A2 training products"
    A3 = "Atlas A3 training products"
    A200T_A3 = "A200T A3 Box8 SuperPoD Server"
    A5 = "Atlas 950/850 products"


class Product(StrEnum):
    """One form of hardware."""

    ATLAS_800_9000 = "Atlas 800 training server (model 9000)"
    ATLAS_800_9010 = "Atlas 800 training server (model 9010)"
    ATLAS_800T_A2 = "Atlas 800T A2 training server"
    ATLAS_200T_A2 = "Atlas 200T A2 Box16 heterogeneous subrack"
    ATLAS_900_A2 = "Atlas 900 A2 PoD cluster basic unit"
    ATLAS_900_A2_PODC = "Atlas 900 A2 PoDc cluster basic unit"
    ATLAS_900_A3 = "Atlas 900 A3 SuperPoD"
    ATLAS_800T_A3 = "Atlas 800T A3 SuperPoD Server"
    ATLAS_9000_A3 = "Atlas 9000 A3 SuperPoD"
    A200T_A3_BOX8 = "A200T A3 Box8 SuperPoD Server"
    ATLAS_950 = "Atlas 950 SuperPoD"
    ATLAS_850 = "Atlas 850"
    ATLAS_850E = "Atlas 850E"


FAMILIES: dict[Product, Family] = {
    Product.ATLAS_800_9000: Family.TRAINING,
    Product.ATLAS_800_9010: Family.TRAINING,
    Product.ATLAS_800T_A2: Family.A2,
    Product.ATLAS_200T_A2: Family.A2,
    Product.ATLAS_900_A2: Family.A2,
    Product.ATLAS_900_A2_PODC: Family.A2,
    Product.ATLAS_900_A3: Family.A3,
    Product.ATLAS_800T_A3: Family.A3,
    Product.ATLAS_9000_A3: Family.A3,
    Product.A200T_A3_BOX8: Family.A200T_A3,
    Product.ATLAS_950: Family.A5,
    Product.ATLAS_850: Family.A5,
    Product.ATLAS_850E: Family.A5,
}

SMP_PRODUCTS = frozenset({Product.ATLAS_800_9000, Product.ATLAS_800_9010})
SMP_CARDS = frozenset({1, 2})
ACCELERATOR_TYPES: dict[str, Family] = {
    "module": Family.TRAINING,
    "half": Family.TRAINING,
    "module-910b-8": Family.A2,
    "module-910b-16": Family.A2,
    "module-a3-8": Family.A3,
    "module-a3-16": Family.A3,
    "module-a3-8-super-pod": Family.A3,
    "module-a3-16-super-pod": Family.A3,
}
"""Node label accelerator-type; one that is not here says nothing."""
SMP_ACCELERATOR_TYPES = frozenset(
    name for name, family in ACCELERATOR_TYPES.items() if family is Family.TRAINING
)

ALL = frozenset(Framework)
BOTH = frozenset({Framework.PYTORCH, Framework.MINDSPORE})
PYTORCH = frozenset({Framework.PYTORCH})


@dataclass(frozen=True, slots=True)
class Support:
    """Where one mode works. `since`: the first version; `until`: the last one by framework."""

    mode: Mode
    products: tuple[Product, ...]
    frameworks: frozenset[Framework]
    since: str = ""
    until: str = ""
    restrictions: str = ""

    def frameworks_on(self, product: Product) -> frozenset[Framework]:
        """What is supported there: the newest products know PyTorch only."""
        if product not in self.products:
            return frozenset()
        return self.frameworks & PYTORCH if FAMILIES[product] is Family.A5 else self.frameworks

    @property
    def families(self) -> frozenset[Family]:
        """The generations in which at least one product has it."""
        return frozenset(FAMILIES[product] for product in self.products)

    def smp_excluded(self, product: Product, *, cards: int) -> bool:
        """Whether a pod of `cards` cards is not rescheduled there if the server works in SMP mode."""
        return self.mode is Mode.JOB and product in SMP_PRODUCTS and cards in SMP_CARDS


_OLD = (Product.ATLAS_800_9000, Product.ATLAS_800_9010)
_A2 = (Product.ATLAS_800T_A2, Product.ATLAS_200T_A2, Product.ATLAS_900_A2)
_A3 = (Product.ATLAS_900_A3, Product.ATLAS_800T_A3, Product.ATLAS_9000_A3)
_A5 = (Product.ATLAS_950, Product.ATLAS_850, Product.ATLAS_850E)
_WIDE = (*_OLD, *_A2, *_A3, Product.A200T_A3_BOX8, *_A5)
_PROCESS = (*_A2, *_A3, Product.ATLAS_950)

SUPPORT: tuple[Support, ...] = (
    Support(
        Mode.JOB,
        _WIDE,
        ALL,
        since="6.0.RC2",
        restrictions="SMP mode with 1 or 2 NPUs a pod is excluded on Atlas 800 training servers; rank "
        "table on "
        "shared storage advised in large clusters",
    ),
    Support(
        Mode.POD,
        _WIDE,
        BOTH,
        restrictions="a fault of the leader goes to the job level; no rank table from a ConfigMap; TaskD "
        "Manager "
        "in the container; raise the limit of open files",
    ),
    Support(
        Mode.RECOVER,
        _PROCESS,
        BOTH,
        restrictions="AscendJob only; Megatron-like models (PyTorch); no multimodal; no watchdog; not "
        "while a "
        "checkpoint is saved; not with graceful tolerance; moving the leader goes to the job level; no "
        "rank table "
        "from a ConfigMap",
    ),
    Support(
        Mode.IN_PLACE,
        _PROCESS,
        BOTH,
        restrictions="only dead processes and RestartRequest/RestartBusiness faults of cards; as recover, "
        "but the "
        "leader's processes too",
    ),
    Support(
        Mode.RETRY,
        (Product.ATLAS_800T_A2, Product.ATLAS_900_A2, Product.ATLAS_900_A2_PODC, *_A3, Product.ATLAS_950),
        BOTH,
        restrictions="network faults on A3 only; no MC2; no multimodal; no watchdog; "
        "PYTORCH_NO_NPU_MEMORY_CACHING unset; MindSpore: TASKD_PROCESS_ENABLE=on; not with graceful "
        "tolerance",
    ),
    Support(
        Mode.ELASTIC,
        (Product.ATLAS_800T_A2, Product.ATLAS_900_A3),
        PYTORCH,
        since="MindSpeed-LLM 2.3.0",
        restrictions="AscendJob only; full copy of the optimizer; not the leader; no multimodal, watchdog "
        "or "
        "graceful tolerance",
    ),
    Support(Mode.DUMP, _PROCESS, BOTH, restrictions="wherever MindIO runs"),
    Support(Mode.EXIT, _PROCESS, BOTH, restrictions="wherever MindIO runs"),
    Support(
        Mode.GRACEFUL,
        (*_OLD, Product.ATLAS_800T_A2, Product.ATLAS_900_A2, Product.ATLAS_900_A3, Product.ATLAS_800T_A3),
        BOTH,
        until="PyTorch 7.2.RC1, MindSpore 7.1.RC1",
        restrictions="faults of cards only; excludes every process-level mode",
    ),
    Support(
        Mode.OPERATOR_RETRY,
        (Product.ATLAS_900_A3, Product.ATLAS_9000_A3),
        BOTH,
        restrictions="no MC2; no watchdog",
    ),
    Support(
        Mode.LINK_SWITCH,
        (Product.ATLAS_900_A3, Product.ATLAS_800T_A3),
        BOTH,
        since="torch_npu 7.1.RC1, CANN 8.2.RC1, MindIO 7.1.RC1",
        restrictions="RoCE between pods; once the training iterates; the other link is up; process-level "
        "recovery on",
    ),
    Support(
        Mode.STRESS_TEST,
        (Product.ATLAS_800T_A2, Product.ATLAS_900_A3),
        BOTH,
        since="PyTorch: torch_npu 7.1.RC1, CANN 8.2.RC1, MindIO 7.1.RC1; MindSpore 2.7.0, CANN 8.2.RC1, "
        "MindIO 7.2.RC1",
        restrictions="once the training iterates; process-level recovery on; hot reset off; P2P needs 10 "
        "GB free",
    ),
    Support(
        Mode.HOT_SWITCH,
        (Product.ATLAS_800T_A2, Product.ATLAS_800T_A3, Product.ATLAS_9000_A3),
        BOTH,
        restrictions="AscendJob only; not the leader; no multimodal; no watchdog; needs a spare node",
    ),
)


def support(mode: Mode) -> Support:
    """The row of `mode`."""
    return next(row for row in SUPPORT if row.mode is mode)
