"""Wiring and life cycle: the controller, and the desks of commands that do without a running one."""

from mindie_ha.app.controller import App
from mindie_ha.app.core import Core
from mindie_ha.app.desks import (
    adoption_desk,
    explainer,
    isolation_desk,
    looking,
    observe,
    observe_faults,
    pause_desk,
    published_table,
    rearm_desk,
    request_desk,
)
from mindie_ha.app.edges import Edges
from mindie_ha.app.serving import serve

__all__ = [
    "App",
    "Core",
    "Edges",
    "adoption_desk",
    "explainer",
    "isolation_desk",
    "looking",
    "observe",
    "observe_faults",
    "pause_desk",
    "published_table",
    "rearm_desk",
    "request_desk",
    "serve",
]
