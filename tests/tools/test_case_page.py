"""The page of known failures names each number once, and only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "cases.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d{3}) \| (.+) \| (.+) \|$", PAGE, flags=re.MULTILINE)


def test_each_number_stands_once_and_in_order() -> None:
    numbers = [number for number, _, _ in ROWS]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 60


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for number, _, cell in ROWS:
        named = re.findall(r"`([a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`", cell)
        assert named, number
        for path, name in named:
            text = (TESTS / path).read_text(encoding="utf-8")
            if not re.search(rf"^(async )?def {name}\(", text, flags=re.MULTILINE):
                missing.append(f"{number}: {path}::{name}")
    assert missing == []
