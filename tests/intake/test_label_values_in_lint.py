"""Of each value of a switch label, lint says what log and Event say."""

from __future__ import annotations

import pytest
import yaml

from mindie_ha.intake.jobs.explaining import workload_of
from mindie_ha.intake.lints.checking import check
from mindie_ha.intake.lints.jobs.manifests import describe
from mindie_ha.intake.lints.remarks import Weight
from mindie_ha.model.settings import Settings
from mindie_ha.policy import label_values
from mindie_ha.policy.ownership import claim
from mindie_ha.policy.rungs.pod import remark
from tests.intake.job_patches import label, patched
from tests.intake.job_variants import COORDINATOR

WRITTEN = ["on", '"on"', "true", '"true"', '"On "', "off", '"off"', '"yes"', "7"]


@pytest.mark.parametrize("name", label_values.LABELS)
@pytest.mark.parametrize("text", WRITTEN)
def test_one_value_has_one_word(name: str, text: str) -> None:
    value = yaml.safe_load(text)
    subject = patched(COORDINATOR, label(name, value), kind="AscendJob")
    job = describe(subject)
    assert job is not None
    said = label_values.judge(name, value)
    found = [one for one in check(subject).remarks if one.code == f"{name}-value"]
    if said.standing is label_values.Standing.KNOWN:
        assert found == []
        return
    assert [(one.weight, one.what, one.advice) for one in found] == [
        (Weight.ERROR, said.message, said.advice)
    ]
    if said.standing is label_values.Standing.IGNORED:  # it reaches a cluster, so there is an Event
        workload = workload_of(job)
        pod_level = name == label_values.POD_RESCHEDULING
        notice = remark(workload) if pod_level else claim(workload, None, settings=Settings()).notice
        assert notice is not None
        assert notice.message == f"{workload.key}: {said.sentence}"
