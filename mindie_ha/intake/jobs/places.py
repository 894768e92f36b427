"""Where in an object a thing stands: a path of keys and numbers, and its line in the file.

The line of something that is absent is that of the deepest part that is there. A document that was not read
from text has no lines (0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z_][\w-]*\Z")


def shown(path: Path) -> str:
    """As people write it: `spec.replicaSpecs.Master`, `metadata.labels["a/b"]`, `containers[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.match(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part[:120]}"]'
    return text or "(the object)"


@dataclass(frozen=True, slots=True)
class Places:
    """The lines of one document."""

    node: yaml.Node | None = None

    def line(self, path: Path) -> int:
        """Line (from 1) of `path`; 0: unknown."""
        node, line = self.node, self._line(self.node, 0)
        for part in path:
            found = _step(node, part)
            if found is None:
                break
            key, node = found
            line = self._line(key, line)
        return line

    def _line(self, node: yaml.Node | None, default: int) -> int:
        mark = getattr(node, "start_mark", None)
        return mark.line + 1 if mark is not None else default

    def below(self, part: str | int) -> Places:
        """The lines of a part, for `items` of a list."""
        found = _step(self.node, part)
        return Places(found[1]) if found is not None else Places()


def _step(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The node that names `part` and the node of its value."""
    if isinstance(node, yaml.MappingNode):
        hits = [pair for pair in node.value if isinstance(pair[0], yaml.ScalarNode) and pair[0].value == part]
        return hits[-1] if hits else None
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
        return node.value[part], node.value[part]
    return None
