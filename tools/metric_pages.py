"""The table of metrics in docs/monitoring.md, made from the registry; the rest of it is written by hand.

Made parts stand between two marks, so that `python -m tools.docs` can renew them and leave the prose alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from mindie_ha.kit.metrics import Metrics

PAGE = Path(__file__).resolve().parent.parent / "docs" / "monitoring.md"
BEGIN = "<!-- metrics: made by `python -m tools.docs` from mindie_ha/kit/metrics.py; do not edit -->"
END = "<!-- end of metrics -->"


def found() -> list[MetricWrapperBase]:
    """Every metric of the house, in the order of their making."""
    return [value for value in vars(Metrics()).values() if isinstance(value, MetricWrapperBase)]


def full_name(metric: MetricWrapperBase) -> str:
    """The name as it is scraped: counters end in `_total`."""
    return f"{metric._name}_total" if metric._type == "counter" else metric._name


def rows() -> Iterator[str]:
    """One line for each metric."""
    yield "| Metric | Kind | Labels | Meaning |"
    yield "|---|---|---|---|"
    for metric in found():
        labels = ", ".join(f"`{name}`" for name in metric._labelnames)
        yield f"| `{full_name(metric)}` | {metric._type} | {labels} | {metric._documentation} |"


def monitoring_page() -> str:
    """The page as it is, with a fresh table of metrics. ValueError: its marks are missing."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name}: the marks around the table of metrics are missing")
    return f"{before}{BEGIN}\n\n" + "\n".join(rows()) + f"\n\n{END}{after}"
