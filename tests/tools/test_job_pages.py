"""The pages on jobs: every link that lint prints has its section, every parameter its row."""

from __future__ import annotations

import re
from pathlib import Path

from mindie_ha.intake.lints.jobs.rules import DOCS
from mindie_ha.intake.lints.jobs.table import ALL_RULES
from mindie_ha.policy.parameters.catalogue import PARAMETERS

LINT = Path(DOCS).read_text(encoding="utf-8")
JOBS = Path("docs/jobs.md").read_text(encoding="utf-8")


def test_every_rule_has_its_section() -> None:
    assert {rule.code for rule in ALL_RULES} == set(re.findall(r"^### (\S+)$", LINT, re.MULTILINE))


def test_every_parameter_has_its_row_and_its_links_lead_somewhere() -> None:
    for one in PARAMETERS:
        assert f"| `{one.name}` |" in JOBS
    anchors = set(re.findall(r"lint\.md#([\w-]+)", JOBS))
    assert anchors <= {rule.code for rule in ALL_RULES}
