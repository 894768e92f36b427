"""Set-up for every test."""

from __future__ import annotations

import asyncio

from hypothesis import settings

settings.register_profile("fuzz", max_examples=10_000, deadline=None)


def pytest_sessionstart() -> None:
    """Forbid event loops nobody asked for: looptime looks for one, and asyncio would make it."""
    asyncio.set_event_loop(None)
