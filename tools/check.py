"""House rules that no ready-made tool checks; run by `make check`.

Sizes of files and functions, broad excepts outside the supervisor, names that say nothing, an architecture
page that names every room, settings that nothing reads, metrics that nothing sets. Prints one line per
finding and exits 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mindie_ha"
MAX_FILE_LINES = 500
MEDIAN_FILE_LINES = 200
MAX_FUNCTION_LINES = 45
BROAD_EXCEPT_HOME = PACKAGE / "kit" / "tasks.py"
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}


def sources(*folders: str) -> Iterator[Path]:
    """Our Python files, without generated ones."""
    for folder in folders:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "_pb2" not in path.name)


def file_findings() -> Iterator[str]:
    """Files that are too long or named after nothing."""
    lengths = []
    for path in sources("mindie_ha", "tests", "tools"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if path.is_relative_to(PACKAGE):
            lengths.append(lines)
        if lines > MAX_FILE_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines, limit {MAX_FILE_LINES}: split it along an idea"
        if path.stem in EMPTY_NAMES or path.parent.name in EMPTY_NAMES:
            yield f"{path.relative_to(ROOT)}: a name that says nothing; call it after what is in it"
    if statistics.median(lengths) > MEDIAN_FILE_LINES:
        yield f"the median file has {statistics.median(lengths)} lines, the limit is {MEDIAN_FILE_LINES}"


def function_findings() -> Iterator[str]:
    """Functions that are too long, and broad excepts where they may not be."""
    for path in sources("mindie_ha", "tools"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    yield f"{where}: {node.name} has {lines} lines, the limit is {MAX_FUNCTION_LINES}"
            if isinstance(node, ast.ExceptHandler) and path != BROAD_EXCEPT_HOME and is_broad(node):
                yield f"{where}: broad except; only {BROAD_EXCEPT_HOME.relative_to(ROOT)} may have one"


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether it catches everything."""
    caught = handler.type
    return caught is None or (isinstance(caught, ast.Name) and caught.id in ("Exception", "BaseException"))


def docs_findings() -> Iterator[str]:
    """The architecture page must name every room, and only rooms that exist."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    named = {line.split("`")[1].rstrip("/") for line in page.splitlines() if line.startswith("| `")}
    for room in sorted(rooms - named):
        yield f"docs/architecture.md: the room {room}/ is missing from its table"
    for room in sorted(name for name in named - rooms if "." not in name):
        yield f"docs/architecture.md: names {room}/, which does not exist"


def unread_findings() -> Iterator[str]:
    """Settings that nothing reads, and metrics that nothing sets."""
    texts = {path: path.read_text(encoding="utf-8") for path in sources("mindie_ha")}
    for home, what in (
        (PACKAGE / "model" / "settings.py", "setting"),
        (PACKAGE / "kit" / "metrics.py", "metric"),
    ):
        rest = "\n".join(text for path, text in texts.items() if path != home)
        for name in declared(ast.parse(texts[home])):
            if not re.search(rf"\.{name}\b", rest):
                yield f"{home.relative_to(ROOT)}: nothing uses the {what} {name}"


def declared(tree: ast.AST) -> Iterator[str]:
    """Annotated fields of classes, and attributes of `self` that are made by `made`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            maker = node.value.func
            if (
                isinstance(maker, ast.Attribute)
                and isinstance(maker.value, ast.Name)
                and maker.value.id == "made"
            ):
                yield from (target.attr for target in node.targets if isinstance(target, ast.Attribute))


def main() -> int:
    """Print every finding."""
    findings = [*file_findings(), *function_findings(), *docs_findings(), *unread_findings()]
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
