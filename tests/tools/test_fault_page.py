"""The page about faults is current and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindie_ha.model.levels import Family
from tools.fault_pages import NOT_JUDGED, TITLES, faults_page

ROOT = Path(__file__).parent.parent.parent


def proven() -> set[str]:
    """The vectors that tests name, as id, in their name or in their first line."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    return {
        f"V{number}" for text in texts for number in re.findall(r"(?<![A-Za-z0-9])[Vv](\d\d)(?!\d)", text)
    }


@pytest.mark.parametrize("vector", [f"V{number:02}" for number in range(1, 94)])
def test_every_vector_is_proven_by_a_test_or_left_out_with_a_reason(vector: str) -> None:
    assert vector in proven() or NOT_JUDGED.get(vector)


def test_the_page_is_made_from_the_table() -> None:
    assert (ROOT / "docs" / "faults.md").read_text(encoding="utf-8") == faults_page()
    assert set(TITLES) == set(Family)
