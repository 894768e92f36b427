"""Lint of job manifests: every rule finds its fault and nothing else, and never stumbles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.intake.jobs.descriptions import Surroundings
from mindie_ha.intake.lints.checking import check, check_all
from mindie_ha.intake.lints.jobs import manifests
from mindie_ha.intake.lints.jobs.table import ALL_RULES, JOB_RULES
from mindie_ha.intake.lints.remarks import Sheet, Weight
from mindie_ha.intake.lints.subjects import Subject, read
from mindie_ha.model.errors import InputError
from mindie_ha.policy.parameters.catalogue import BY_NAME
from tests.intake.fuzzing import FUZZED
from tests.intake.job_patches import (
    Patch,
    Variant,
    clean,
    label,
    note,
    options,
    patched,
    plugin,
    put,
    unshared,
    variable,
)
from tests.intake.job_variants import (
    BASES,
    COORDINATOR,
    ELASTIC,
    PLUGIN,
    POD,
    PROCESS,
    SERVER,
    VARIANTS,
    VCJOB,
)

ACROSS = {"graceful-with-process", "rings-config-missing"}  # look at several objects; have their own tests


def found(sheet: Sheet) -> set[str]:
    return {remark.code for remark in sheet.remarks}


@pytest.mark.parametrize(("base", "kind"), BASES, ids=str)
def test_a_clean_manifest_has_no_finding(base: str, kind: str) -> None:
    sheet = check(clean(base, kind=kind))
    assert sheet.rule
    assert sheet.remarks == ()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.name))
def test_a_broken_manifest_shows_exactly_its_fault(variant: Variant) -> None:
    sheet = check(variant.broken())
    assert found(sheet) == {variant.code}, sheet.remarks
    for remark in sheet.remarks:
        assert remark.what
        assert remark.why
        assert remark.advice
        assert remark.line > 0
        assert remark.docs == f"docs/lint.md#{variant.code}"


def test_every_rule_has_a_broken_manifest() -> None:
    assert {rule.code for rule in ALL_RULES} - ACROSS == {variant.code for variant in VARIANTS}


def test_every_rule_is_one_row_about_known_parameters() -> None:
    codes = [rule.code for rule in ALL_RULES]
    assert len(codes) == len(set(codes))
    for rule in ALL_RULES:
        assert set(rule.about) <= set(BY_NAME), rule.code
        assert rule.why
        assert rule.fix
        assert not rule.fix.endswith(".")


def test_graceful_tolerance_of_the_device_plugin_beside_a_process_level_job() -> None:
    job = clean(PROCESS, kind="AscendJob")
    plugin = clean("device_plugin", kind="DaemonSet")
    sunset = unshared(plugin.body)
    args = sunset["spec"]["template"]["spec"]["containers"][0]["args"]
    args[0] = args[0].replace("-hotReset=2", "-hotReset=1")
    old = Subject(file="f", kind="DaemonSet", namespace="kube-system", name="plugin", body=sunset)
    assert [found(sheet) for sheet in check_all([job, plugin])] == [set(), set()]
    assert [found(sheet) for sheet in check_all([job, old])] == [
        {"graceful-with-process"},
        {"hot-reset-deprecated"},
    ]


def test_a_server_without_its_rank_table_among_those_of_others() -> None:
    job, config = clean(SERVER, kind="AscendJob"), clean(SERVER, kind="ConfigMap")
    other = replace(config, name="rings-config-another")
    assert [found(sheet) for sheet in check_all([job, config, other])] == [set(), set(), set()]
    assert [found(sheet) for sheet in check_all([job, other])] == [{"rings-config-missing"}, set()]
    assert found(check(job)) == set()  # alone, nothing is known of the others


def test_manifests_that_we_ship_have_no_finding_but_those_of_the_documents() -> None:
    for path in sorted(Path("mindie_ha/demo/manifests").glob("*.yaml")):
        sheets = check_all(read(path.read_text(encoding="utf-8"), file=path.name))
        wrong = {
            remark.code for sheet in sheets for remark in sheet.remarks if remark.weight is not Weight.NOTE
        }
        # The one made of the documents' own sample has neither, as the sample has neither.
        told = {"rings-no-deploy-label", "fault-retry-times-absent"} if path.name == "seed.yaml" else set()
        assert wrong == told, path.name


def test_a_note_is_no_fault() -> None:
    notes = {rule.code for rule in JOB_RULES if rule.weight is Weight.NOTE}
    for variant in VARIANTS:
        assert check(variant.broken()).is_wrong == (variant.code not in notes)


def test_findings_name_file_document_and_line() -> None:
    text = """kind: Secret
---
kind: AscendJob
metadata:
  name: a
  labels:
    framework: pytorch
    jobID: 7
"""
    _, sheet = check_all(read(text, file="jobs.yaml"))
    places = {remark.where: remark.line for remark in sheet.remarks}
    assert (sheet.file, sheet.document) == ("jobs.yaml", 2)
    assert places["metadata.labels.jobID"] == 8
    assert places["spec.replicaSpecs"] == 3  # absent: the deepest part that is there


def test_lines_of_items_of_a_list() -> None:
    text = """kind: List
items:
- kind: AscendJob
  metadata: {name: a}
- kind: AscendJob
  metadata:
    name: B
"""
    first, second = check_all(read(text, file="f"))
    assert {remark.line for remark in first.remarks if remark.where == "spec.replicaSpecs"} == {3}
    assert {remark.line for remark in second.remarks if remark.code == "bad-name"} == {7}


def test_a_small_file_that_unfolds_without_end_is_bounded() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    spec = "spec: {replicaSpecs: {"
    spec += ", ".join(f"T{number}: *task" for number in range(400)) + "}}"
    env = "env: &env [" + ", ".join("{name: A, value: b}" for _ in range(400)) + "]"
    containers = "containers: &containers [" + ", ".join("{name: c, env: *env}" for _ in range(400)) + "]"
    task = "task: &task {template: {spec: {containers: *containers}}}"
    job = "\n".join(("kind: AscendJob", "metadata: {name: a}", *levels, env, containers, task, spec))
    (sheet,) = check_all(read(job, file="f"))
    assert any("looked at" in remark.what for remark in sheet.remarks)
    lists = ["a: &l0 {kind: List, items: [" + ", ".join("{kind: Secret}" for _ in range(50)) + "]}"]
    lists += [f"b{n}: &l{n} {{kind: List, items: [{', '.join([f'*l{n - 1}'] * 50)}]}}" for n in range(1, 7)]
    with pytest.raises(InputError, match="more than"):
        read("\n".join((*lists, "kind: List", "items: [*l6]")), file="f")


@pytest.mark.parametrize("value", ["*l9", "0x" + "f" * 5000], ids=["lists-without-end", "a-large-number"])
@pytest.mark.parametrize(
    "body",
    [
        "kind: ConfigMap, metadata: {name: rings-config-a, labels: {foo: VALUE}}",
        "kind: AscendJob, metadata: {name: a, labels: {framework: VALUE}}, "
        "spec: {replicaSpecs: {Master: {replicas: VALUE, template: {spec: {containers: [{name: ascend, "
        "resources: {requests: {huawei.com/Ascend910: VALUE}}}]}}}}}",
    ],
    ids=["rings-config", "job"],
)
def test_a_value_without_end_is_named_and_not_written_out(body: str, value: str) -> None:
    lists = ["l0: &l0 [" + ", ".join("x" * 10) + "]"]
    lists += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    text = "kind: List\nitems:\n- {" + ", ".join((*lists, body.replace("VALUE", value))) + "}"
    (sheet,) = check_all(read(text, file="f"))
    assert any("no string" in remark.what for remark in sheet.remarks)


@pytest.mark.parametrize(
    ("base", "kind", "patch"),
    [
        (ELASTIC, "AscendJob", note("wait-reschedule-timeout", "30")),
        (ELASTIC, "AscendJob", note("wait-reschedule-timeout", "270")),
        (ELASTIC, "AscendJob", variable("MINDIO_WAIT_MINDX_TIME", "3600")),
        (PLUGIN, "DaemonSet", plugin("-listWatchPeriod=5", "-listWatchPeriod=3")),
        (PLUGIN, "DaemonSet", plugin("-listWatchPeriod=5", "-listWatchPeriod=1800")),
        (PLUGIN, "DaemonSet", plugin("-hotReset=2", "-hotReset=-1")),
        (PROCESS, "AscendJob", put("spec runPolicy backoffLimit", 3)),
        (PROCESS, "AscendJob", note("sp-block", "16")),
        (PROCESS, "AscendJob", note("huawei.com/affinity-config", "level1=2,level2=4")),
        (
            PROCESS,
            "AscendJob",
            options("--enable-high-availability --enable-hbmfault-repair --enable-worker-reboot"),
        ),
        (POD, "AscendJob", options("--max_restarts $MAX --monitor_interval 1")),
        (VCJOB, "Job", label("fault-retry-times", "0")),
        (COORDINATOR, "AscendJob", label("fault-scheduling", "external-force")),
    ],
)
def test_what_is_just_right_has_no_error(base: str, kind: str, patch: Patch) -> None:
    sheet = check(patched(base, patch, kind=kind))
    assert [one for one in sheet.remarks if one.weight is Weight.ERROR] == []


def test_a_shared_template_is_judged_where_it_stands() -> None:
    subject = patched(
        PROCESS, lambda body: body["spec"]["replicaSpecs"]["Worker"].pop("template"), kind="AscendJob"
    )
    assert "container-ascend" in found(check(subject))


words = st.sampled_from(
    [
        "kind",
        "AscendJob",
        "Job",
        "Deployment",
        "DaemonSet",
        "apiVersion",
        "batch.volcano.sh/v1alpha1",
        "metadata",
        "name",
        "labels",
        "annotations",
        "spec",
        "replicaSpecs",
        "Master",
        "Worker",
        "template",
        "containers",
        "ascend",
        "env",
        "value",
        "args",
        "ports",
        "containerPort",
        "resources",
        "limits",
        "huawei.com/Ascend910",
        "fault-scheduling",
        "grace",
        "on",
        "pod-rescheduling",
        "recover-strategy",
        "retry,recover",
        "framework",
        "pytorch",
        "app",
        "mindie-ms-server",
        "jobID",
        "sp-block",
        "16",
        "restartPolicy",
        "Never",
        "replicas",
        "volumes",
        "configMap",
        "tasks",
        "policies",
        "minAvailable",
    ]
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.integers(), inner, max_size=6),
    max_leaves=25,
)


@FUZZED
@given(
    kind=st.sampled_from(
        [("AscendJob", ""), ("Job", "batch.volcano.sh/v1alpha1"), ("DaemonSet", ""), ("ConfigMap", "")]
    ),
    metadata=junk,
    spec=junk,
)
def test_no_object_breaks_it(kind: tuple[str, str], metadata: object, spec: object) -> None:
    body = {"kind": kind[0], "apiVersion": kind[1], "metadata": metadata, "spec": spec, "data": spec}
    check(Subject(file="f", kind=kind[0], namespace="", name="rings-config-x", body=body))


@FUZZED
@given(data=st.data())
def test_a_clean_manifest_with_anything_anywhere_breaks_nothing(data: st.DataObject) -> None:
    base, kind = data.draw(st.sampled_from(BASES))
    body = unshared(clean(base, kind=kind).body)
    holder: Any = body
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        below = holder[key]
        if not isinstance(below, dict | list) or data.draw(st.integers(0, 3)) == 0:
            holder[key] = data.draw(junk)
            break
        holder = below
    subject = Subject(file="f", kind=kind, namespace="", name="rings-config-x", body=body)
    check_all([subject])
    if (job := manifests.describe(subject, Surroundings(hot_reset=1))) is not None:
        list(manifests.remarks(job))


@FUZZED
@given(text=st.text(max_size=200) | junk.map(str))
def test_no_text_breaks_it(text: str) -> None:
    try:
        subjects = read(text, file="f")
    except InputError:
        return
    check_all(subjects)
