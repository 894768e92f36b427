"""docs/monitoring.md: every reason that can be told has its row; the alert rules name metrics that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from mindie_ha.kit.metrics import PREFIX
from mindie_ha.policy.waits import ENDS
from tools.metric_pages import PAGE, found, full_name, monitoring_page

TEXT = PAGE.read_text(encoding="utf-8")
PACKAGE = Path(__file__).resolve().parents[2] / "mindie_ha"
REASON = re.compile(r"[A-Z][a-z]+[A-Za-z]+")


def trees() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]


def constants(modules: list[ast.Module]) -> dict[str, set[str]]:
    """What a name of a module stands for, wherever it is given a text."""
    found: dict[str, set[str]] = {}
    for node in (each for module in modules for each in module.body):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in (each for each in node.targets if isinstance(each, ast.Name)):
                found.setdefault(target.id, set()).add(str(node.value.value))
    return found


def told() -> Iterator[str]:
    """Reasons that the source gives to notices, parks and refusals, as texts or by names."""
    modules = trees()
    known = constants(modules)
    for node in (each for module in modules for each in ast.walk(module)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[:1] if name in ("Notice", "Refusal") else []
        named = [word.value for word in node.keywords if name == "park" and word.arg == "reason"]
        for value in (*first, *named):
            if isinstance(value, ast.Constant):
                yield str(value.value)
            yield from known.get(getattr(value, "id", getattr(value, "attr", "")), ())


def test_every_reason_has_its_row() -> None:
    rows = {
        reason
        for line in TEXT.partition("## Events")[2].splitlines()
        if line.startswith("| `")
        for reason in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    reasons = {reason for reason in told() if REASON.fullmatch(reason)} | set(ENDS)
    assert len(reasons) > 40
    assert reasons - rows == set()


def test_the_alert_rules_name_metrics_and_labels_that_exist() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    rules = yaml.safe_load(block)["groups"][0]["rules"]
    known = {full_name(metric): set(metric._labelnames) for metric in found()}
    for rule in rules:
        for name, labels in re.findall(rf"({PREFIX}\w+)(?:\{{(.*?)\}})?", rule["expr"]):
            assert name in known, rule["alert"]
            assert set(re.findall(r"(\w+)[=!]", labels)) <= known[name], rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_reasons_of_alerts_are_reasons_that_are_told() -> None:
    named = {one for group in re.findall(r'reason=~?"([\w|]+)"', TEXT) for one in group.split("|")}
    assert named <= set(told())


def test_the_page_is_made_again_from_itself() -> None:
    assert monitoring_page() == TEXT
