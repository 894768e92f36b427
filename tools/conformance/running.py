"""Plays all cases against one API server and gives the shapes of its answers."""

from __future__ import annotations

from typing import Any

from mindie_ha.sim.requests import Exchange
from tools.conformance.playing import Case, cases, play
from tools.conformance.shapes import Shaper


async def answered(exchange: Exchange, case: Case, *, namespace: str) -> list[Any]:
    """What one server answers to a case, in a shape that can be compared."""
    return Shaper(namespace).shape(await play(exchange, case, namespace=namespace))


async def all_answered(exchange: Exchange, *, prefix: str) -> dict[str, list[Any]]:
    """The same for every case, each in a namespace of its own."""
    return {
        case.name: await answered(exchange, case, namespace=f"{prefix}-{number}")
        for number, case in enumerate(cases())
    }
