"""The global rank table and the instance tables it is made of, as frozen facts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PdRole(StrEnum):
    """Whether a server instance prefills, decodes, or does both."""

    PREFILL = "prefill"
    DECODE = "decode"
    HYBRID = "hybrid"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """What a finding means for publication."""

    ACCEPT = "accept"
    WARN = "warn"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Finding:
    """One judgement about a table: where it stands, what is wrong, in words for a person."""

    severity: Severity
    code: str
    where: str
    message: str
