"""The tables of parameters against the documents' own tables, typed here once more."""

from __future__ import annotations

import pytest

from mindie_ha.policy.parameters.catalogue import BY_NAME, PARAMETERS, needed
from mindie_ha.policy.parameters.injected import recovery_environment
from mindie_ha.policy.parameters.modes import STRATEGIES, TITLES, Framework, Mode, strategies
from mindie_ha.policy.parameters.products import FAMILIES, SUPPORT, Family, Product, support

COLUMNS = (Mode.JOB, Mode.POD, Mode.RECOVER, Mode.IN_PLACE, Mode.RETRY, Mode.GRACEFUL, Mode.ELASTIC)
TABLE_1 = {
    "hotReset": "-----x-",
    "fault-scheduling": "xxxxx-x",
    "pod-rescheduling": "-x-----",
    "process-recover-enable": "--xxx-x",
    "recover-strategy": "--xxx-x",
    "PROCESS_RECOVER": "--xxx-x",
    "ENABLE_RESTART_FAULT_PROCESS": "---x---",
    "ELASTIC_PROCESS_RECOVER_ENABLE": "--xxx--",
    "--enable-high-availability": "--xxx-x",
    "--enable-hbmfault-repair": "----x--",
    "--enable-worker-reboot": "--xx---",
    "--enable-elastic-training": "------x",
    "max_restarts": "-xxxx--",
    "monitor_interval": "-xxxx--",
    "fault-retry-times": "xxx---x",
}
BESIDE_TABLE_1 = [
    "HIGH_AVAILABILITY",
    "TASKD_PROCESS_ENABLE",
    "MINDIO_WAIT_MINDX_TIME",
    "hccl_watchdog",
    "autoStowing",
    "listWatchPeriod",
    "volcanoType",
    "LD_PRELOAD",
    "manager.py",
    "init_taskd_worker",
    "MS_ENABLE_TFT",
    "HCCL_OP_RETRY_ENABLE",
    "HCCL_OP_RETRY_PARAMS",
    "HCCL_ASYNC_ERROR_HANDLING",
    "wait-reschedule-timeout",
    "subHealthyStrategy",
    "taskd-port",
    "hostNetwork",
]
PROCESS = {"PROCESS_RECOVER": "on", "ELASTIC_PROCESS_RECOVER_ENABLE": "1"}
IN_PLACE = {**PROCESS, "ENABLE_RESTART_FAULT_PROCESS": "on"}
PT_BESIDE = {"HCCL_ASYNC_ERROR_HANDLING": "0"}
MS_BESIDE = {"MS_ENABLE_THM": "{HCCL_WATCHDOG:0}"}
MINDIO = {"MINDIO_FOR_MINDSPORE": "1"}
TABLE_3 = [
    (Framework.PYTORCH, Mode.RECOVER, {**PROCESS, "HIGH_AVAILABILITY": "recover"}),
    (Framework.PYTORCH, Mode.RETRY, {**PROCESS, "HIGH_AVAILABILITY": "retry"}),
    (Framework.PYTORCH, Mode.IN_PLACE, {**IN_PLACE, "HIGH_AVAILABILITY": "recover"}),
    (Framework.PYTORCH, Mode.ELASTIC, {"PROCESS_RECOVER": "on", "HIGH_AVAILABILITY": "elastic-training"}),
    (Framework.PYTORCH, Mode.DUMP, {**PROCESS, "HIGH_AVAILABILITY": "dump"}),
    (Framework.MINDSPORE, Mode.RECOVER, {**PROCESS, **MINDIO, "MS_ENABLE_TFT": "{ARF:1}"}),
    (Framework.MINDSPORE, Mode.RETRY, {**PROCESS, **MINDIO, "MS_ENABLE_TFT": "{HCCE:1,UCE:1}"}),
    (Framework.MINDSPORE, Mode.IN_PLACE, {**IN_PLACE, **MINDIO, "MS_ENABLE_TFT": "{ARF:1}"}),
    (Framework.MINDSPORE, Mode.DUMP, {**PROCESS, **MINDIO, "MS_ENABLE_TFT": "{TTP:1}"}),
]


@pytest.mark.parametrize("name", TABLE_1)
def test_table_1_of_the_documents(name: str) -> None:
    needing = "".join("x" if mode in BY_NAME[name].needed_by else "-" for mode in COLUMNS)
    assert needing == TABLE_1[name]


def test_every_parameter_of_the_documents_has_a_row() -> None:
    assert {*TABLE_1, *BESIDE_TABLE_1} <= set(BY_NAME)


def test_a_parameter_has_one_row_that_says_what_it_is() -> None:
    assert len(BY_NAME) == len(PARAMETERS)
    for one in PARAMETERS:
        assert one.meaning.endswith(".")
        assert one.read_by
        assert one.bounds is None or one.bounds[0] <= one.bounds[1]
        if one.default.isdecimal() and one.bounds is not None:
            assert one.allows(int(one.default))


@pytest.mark.parametrize(("framework", "mode", "wanted"), TABLE_3, ids=lambda part: str(part)[:20])
def test_table_3_of_the_documents_and_the_watchdog(
    framework: Framework, mode: Mode, wanted: dict[str, str]
) -> None:
    beside = PT_BESIDE if framework is Framework.PYTORCH else MS_BESIDE
    assert recovery_environment(framework, recover_strategy=mode.value) == {**wanted, **beside}


def test_pod_level_injects_for_mindspore_alone() -> None:
    assert recovery_environment(Framework.PYTORCH, pod_level=True) == {}
    assert recovery_environment(Framework.MINDSPORE, pod_level=True) == {"MS_ENABLE_TFT": "{RSC:1}"}


def test_several_strategies_are_united() -> None:
    found = recovery_environment(Framework.PYTORCH, recover_strategy="recover,retry,dump,exit")
    assert found["HIGH_AVAILABILITY"] == "dump,recover,retry"
    found = recovery_environment(Framework.MINDSPORE, recover_strategy="recover,retry", pod_level=True)
    assert found["MS_ENABLE_TFT"] == "{ARF:1,HCCE:1,RSC:1,UCE:1}"


def test_strategies_are_read_as_operator_and_clusterd_read_them() -> None:
    assert strategies("recover, retry,dump,recover,x") == (Mode.RECOVER, Mode.DUMP)
    assert strategies("") == ()
    assert strategies(",".join(STRATEGIES)) == STRATEGIES


def test_every_mode_has_a_title_its_support_and_what_it_needs() -> None:
    assert set(TITLES) == set(Mode) == {row.mode for row in SUPPORT}
    for mode in set(Mode) - {Mode.DUMP, Mode.EXIT}:
        assert needed(mode)


def test_job_level_by_product_as_the_documents_say() -> None:
    job = support(Mode.JOB)
    assert job.since == "6.0.RC2"
    for product in Product:
        if FAMILIES[product] in (Family.TRAINING, Family.A3, Family.A200T_A3):
            assert job.frameworks_on(product) == frozenset(Framework)
    assert job.frameworks_on(Product.ATLAS_950) == {Framework.PYTORCH}
    assert job.frameworks_on(Product.ATLAS_900_A2_PODC) == frozenset()


@pytest.mark.parametrize(
    ("product", "cards", "excluded"),
    [
        (Product.ATLAS_800_9000, 1, True),
        (Product.ATLAS_800_9010, 2, True),
        (Product.ATLAS_800_9000, 4, False),
        (Product.ATLAS_800T_A2, 1, False),
    ],
)
def test_small_pods_in_smp_mode(product: Product, cards: int, *, excluded: bool) -> None:
    assert support(Mode.JOB).smp_excluded(product, cards=cards) == excluded
