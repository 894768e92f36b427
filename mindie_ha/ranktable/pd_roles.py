"""Does an instance prefill or decode?

No label of MindIE says so directly, hence three signs in the order of their reliability: container
environment `ROLE`, the name's ending `-p0` / `-d1`, the label `mind-cluster/group-name` (group0 = P,
group1 = D by convention). The first sign that means something wins. The role is shown to people and used
for the peer hold, never for choosing whom to recover.

Source: motor contract §4.4.
"""

from __future__ import annotations

import re

from mindie_ha.model.ranktables import PdRole

GROUP_NAME_LABEL = "mind-cluster/group-name"

_BY_ROLE = {
    "p": PdRole.PREFILL,
    "prefill": PdRole.PREFILL,
    "d": PdRole.DECODE,
    "decode": PdRole.DECODE,
    "both": PdRole.HYBRID,
    "flex": PdRole.HYBRID,
    "hybrid": PdRole.HYBRID,
    "none": PdRole.HYBRID,
}
_BY_GROUP = {"group0": PdRole.PREFILL, "group1": PdRole.DECODE}
_BY_LETTER = {"p": PdRole.PREFILL, "d": PdRole.DECODE}
_NAME_ENDING = re.compile(r"-([pd])[0-9]{1,6}\Z")


def pd_role(*, env_role: str | None, name: str, group_name: str | None) -> PdRole:
    """The role of the instance called `name`; UNKNOWN if no sign means anything."""
    by_role = _BY_ROLE.get((env_role or "").strip().lower())
    if by_role is not None:
        return by_role
    ending = _NAME_ENDING.search(name)
    if ending is not None:
        return _BY_LETTER[ending.group(1)]
    return _BY_GROUP.get((group_name or "").strip().lower(), PdRole.UNKNOWN)


__all__ = ["GROUP_NAME_LABEL", "pd_role"]
