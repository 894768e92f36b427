"""Whatever can be changed over HTTP has its place in the operators' role and in docs/security.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml
from prometheus_client import CollectorRegistry

from mindie_ha.web.access import READS, VERBS, resource_of
from mindie_ha.web.api import Sources, make_app

ROOT = Path(__file__).parents[2]


class Anything:
    """Stands for every source; nothing is asked."""

    registry = CollectorRegistry()

    def __getattr__(self, name: str) -> Any:
        return Anything()


def test_roles_and_page_name_every_change() -> None:
    role, *_ = yaml.safe_load_all((ROOT / "manifests/examples/operators.yaml").read_text(encoding="utf-8"))
    (rule,) = role["rules"]
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    app = make_app(cast("Sources", Anything()), max_body_bytes=1)
    changes = [
        (route.method, resource.canonical)
        for resource in app.router.resources()
        for route in resource
        if route.method not in READS
    ]
    assert len(changes) >= 7
    for method, pattern in changes:
        kind, part = resource_of(pattern)
        name = f"{kind}/{part}" if part else kind
        assert name in rule["resources"], f"{method} {pattern}"
        assert VERBS[method] in rule["verbs"]
        assert f"`{name}`" in page, f"{method} {pattern}"
