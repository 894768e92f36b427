"""What `lint` says to every job of public documents and manifests, reviewed by hand.

`tests/data/jobs/findings.txt` holds it. After a change of rules, read the difference, then write it anew:
`python -m tests.cli.test_lint_golden`.
"""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_looking_commands import call

GOLDEN = Path("tests/data/jobs/findings.txt")
FILES = (
    *sorted(Path("tests/data/jobs").glob("seed_*")),
    *sorted(Path("tests/data/manifests").glob("motor_acjob_*.yaml")),
)


def findings() -> str:
    """One block a file: exit code, output, error."""
    blocks = []
    for path in FILES:
        code, out, err = call("lint", str(path))
        blocks.append(f"$ mindie-ha lint {path}\n{out}{err}exit code {code}\n")
    return "\n".join(blocks)


def test_findings_are_those_that_were_reviewed() -> None:
    assert findings() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(findings(), encoding="utf-8")
