"""What a container's command and args show of its start script.

Exports and long options are found by their shape, in the text as written, without running a shell: what a
script in the image does is not seen, and nothing is guessed of it. An export inside a condition counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_TEXT = 256 * 1024

_EXPORT = re.compile(r"""\bexport\s+([A-Za-z_]\w{0,100})=("[^"\n]*"|'[^'\n]*'|[^\s;&|"']*)""")
_OPTION = re.compile(r"""(?<![\w-])--([A-Za-z][\w-]{0,60})(?:[= ]+([^\s;&|\\-][^\s;&|\\]*))?""")


@dataclass(frozen=True, slots=True)
class Script:
    """The text, its exports (the last of a name) and its long options, with `_` for `-` in their names."""

    text: str = ""
    exports: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def starts(self, *programs: str) -> bool:
        """Whether one of `programs` is a word of the text, outside comments."""
        code = "\n".join(line.split("#", 1)[0] for line in self.text.splitlines())
        return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", code) for name in programs)


def read_script(parts: list[str]) -> Script:
    """`parts` are the strings of command and args."""
    text = "\n".join(parts)[:MAX_TEXT]
    code = "\n".join(_without_comment(line) for line in text.splitlines())
    exports = {name: value.strip("\"'") for name, value in _EXPORT.findall(code)}
    options = {name.replace("-", "_"): value.strip("\"'") for name, value in _OPTION.findall(code)}
    return Script(text=text, exports=exports, options=options)


def _without_comment(line: str) -> str:
    return re.split(r"(?:^|\s)#", line, maxsplit=1)[0]
