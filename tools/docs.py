"""Write the reference pages that are made from code; `--check` only says whether they are up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mindie_ha.model.settings import Settings
from tools.fault_pages import faults_page
from tools.job_pages import jobs_page, lint_page
from tools.metric_pages import monitoring_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
INTRODUCTION = """# Settings

<!-- made by `python -m tools.docs`; do not edit -->

`mindie-ha run --config FILE` reads YAML with the sections below. The environment wins over the file
(`MINDIE_HA_PHASES__SETTLE_S=20`; lists are JSON: `MINDIE_HA_TABLE__PUSH_TARGETS='["http://host/path"]'`),
flags win over both. Names that end in `_s` are seconds. An unknown key
is refused.
"""


def bounds(field: FieldInfo) -> str:
    """The limits of a value, as a reader writes them."""
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    found = [
        f"{sign} {getattr(rule, name):g}"
        for rule in field.metadata
        for name, sign in signs.items()
        if getattr(rule, name, None) is not None
    ]
    return ", ".join(found)


def section(name: str, model: type[BaseModel]) -> Iterator[str]:
    """One table."""
    yield f"\n## {name}\n"
    yield f"{(model.__doc__ or '').strip()}\n"
    yield "| key | default | bounds | meaning |"
    yield "|---|---|---|---|"
    for key, field in model.model_fields.items():
        yield f"| `{key}` | `{field.default}` | {bounds(field)} | {field.description or ''} |"


def settings_page() -> str:
    """The whole page."""
    lines = [INTRODUCTION.rstrip("\n")]
    plain = []
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            lines += section(name, field.annotation)
        else:
            plain.append(f"| `{name}` | `{field.default}` | {bounds(field)} | {field.description or ''} |")
    lines += ["\n## top level\n", "| key | default | bounds | meaning |", "|---|---|---|---|", *plain]
    return "\n".join(lines) + "\n"


PAGES = {
    "settings.md": settings_page,
    "faults.md": faults_page,
    "jobs.md": jobs_page,
    "lint.md": lint_page,
    "monitoring.md": monitoring_page,
}


def main() -> int:
    """Write, or compare."""
    outdated = []
    for name, make in PAGES.items():
        page = make()
        path = DOCS / name
        if "--check" not in sys.argv:
            path.write_text(page, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != page:
            outdated.append(name)
    for name in outdated:
        print(f"docs/{name} is out of date; run: python -m tools.docs", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
