"""Names of labels and annotations: in the wrong map, misspelt, or for somebody who does not read them.

Source: rescheduling contract §1.0-1.1.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from mindie_ha.intake.jobs.descriptions import JobDescription
from mindie_ha.intake.jobs.places import Path
from mindie_ha.intake.lints.jobs.rules import ERROR, WARNING, Hit, Hits, JobRule
from mindie_ha.policy.parameters.catalogue import PARAMETERS
from mindie_ha.policy.parameters.rows import Place

ANNOTATIONS = frozenset(
    row.name for row in PARAMETERS if row.place in (Place.JOB_ANNOTATION, Place.POD_ANNOTATION)
)
LABELS = frozenset(row.name for row in PARAMETERS if row.place in (Place.JOB_LABEL, Place.POD_LABEL))
OTHERS = frozenset(row.name for row in PARAMETERS if row.place is Place.RANK_TABLE)
KNOWN = ANNOTATIONS | LABELS | OTHERS
SHORTEST = 6  # shorter names are near to everything
ALIKE = 0.85
MAX_KEYS = 200


def misplaced(job: JobDescription) -> Hits:
    """A label among the annotations, or an annotation among the labels."""
    for name in sorted(ANNOTATIONS & set(job.labels)):
        yield Hit(job.label(name), "is an annotation, but stands among the labels")
    for name in sorted(LABELS & set(job.annotations)):
        yield Hit(job.annotation(name), "is a label, but stands among the annotations")


def misspelt(job: JobDescription) -> Hits:
    """A name that is almost one that is known."""
    yield from _near(job.labels, job.labels_path, LABELS)
    yield from _near(job.annotations, job.annotations_path, ANNOTATIONS)


def plugin_skipped(job: JobDescription) -> Hits:
    """A job that the Ascend plugin of Volcano ignores."""
    name = "huawei.com/skip-ascend-plugin"
    if job.rescheduled and job.annotations.get(name) == "enabled":
        yield Hit(job.annotation(name), f"is enabled while fault-scheduling is {job.scheduling}")


def _near(found: Mapping[str, str], path: Path, known: frozenset[str]) -> Hits:
    for name in list(found)[:MAX_KEYS]:
        if name in KNOWN or not SHORTEST <= len(name) <= 63:
            continue
        match = difflib.get_close_matches(
            name.lower().replace("_", "-"), _spellings(known), n=1, cutoff=ALIKE
        )
        if match:
            meant = _spellings(known)[match[0]]
            if meant not in found:
                yield Hit((*path, name), f"is read by nobody; it is almost {meant}", fix=f"write {meant}")


def _spellings(known: frozenset[str]) -> dict[str, str]:
    return {name.lower().replace("_", "-"): name for name in known if len(name) >= SHORTEST}


RULES: tuple[JobRule, ...] = (
    JobRule(
        "misplaced",
        ERROR,
        misplaced,
        "each of them is read in one of the two maps only",
        "move it to the other map",
    ),
    JobRule("misspelt", WARNING, misspelt, "nobody reads a name that is not exactly right", "write it right"),
    JobRule(
        "plugin-skipped",
        WARNING,
        plugin_skipped,
        "Volcano's Ascend plugin then knows nothing of the job: it avoids no faulty card for it",
        "remove the annotation",
        about=("huawei.com/skip-ascend-plugin",),
    ),
)
