"""Set-up for every test."""

from __future__ import annotations

import asyncio


def pytest_sessionstart() -> None:
    """Forbid event loops nobody asked for: looptime looks for one in every test, and asyncio would make it."""
    asyncio.set_event_loop(None)
