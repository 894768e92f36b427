"""The service manifests of the scenarios, as package data.

Each file is what a user would `kubectl apply`: a filled-in copy of the deployment samples (their licence is
in `manifests/LICENSES.md`). `load` returns fresh objects, so a caller may change what it got.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import yaml

NAMES = (
    "pd-a2",
    "pd-a3",
    "pd-ha",
    "single-server",
    "seed",
    "training",
    "training-a3",
    "vcjob",
    "shared",
    "inferserviceset",
)


def load(name: str) -> tuple[dict[str, Any], ...]:
    """The Kubernetes objects of one manifest, in file order; KeyError for a name that is not in `NAMES`."""
    documents = yaml.safe_load_all(text(name))
    # Master and Worker share one YAML anchor; a copy through JSON makes them independent
    return tuple(json.loads(json.dumps(document)) for document in documents if document)


def text(name: str) -> str:
    """The manifest as YAML text; KeyError for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise KeyError(f"no manifest {name!r}; there are: {', '.join(NAMES)}")
    return (resources.files("mindie_ha.demo") / "manifests" / f"{name}.yaml").read_text(encoding="utf-8")


__all__ = ["NAMES", "load", "text"]
