"""Set-up for every test."""

from __future__ import annotations

import asyncio

from hypothesis import settings

# How long an example takes says nothing about the product: no test depends on the speed of a machine.
settings.register_profile("plain", deadline=None)
settings.register_profile("fuzz", max_examples=10_000, deadline=None)
settings.load_profile("plain")


def pytest_sessionstart() -> None:
    """Forbid event loops nobody asked for: looptime looks for one, and asyncio would make it."""
    asyncio.set_event_loop(None)
