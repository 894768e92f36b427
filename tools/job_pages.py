"""`docs/jobs.md` and `docs/lint.md`: parameters of a job and the rules on them, from the tables in code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mindie_ha.intake.jobs.descriptions import JobKind
from mindie_ha.intake.lints.jobs.device_plugins import PLUGIN_RULES
from mindie_ha.intake.lints.jobs.reset_configs import RESET_RULES
from mindie_ha.intake.lints.jobs.rings_configs import RINGS_RULES
from mindie_ha.intake.lints.jobs.rules import JOBS, Rule
from mindie_ha.intake.lints.jobs.table import ALL_RULES, JOB_RULES
from mindie_ha.policy.parameters import injected, products
from mindie_ha.policy.parameters.catalogue import PARAMETERS
from mindie_ha.policy.parameters.modes import TITLES, Framework, Mode
from mindie_ha.policy.parameters.rows import Parameter, Place

MADE = "<!-- made by `python -m tools.docs`; do not edit -->"
TABLE_1 = (
    Mode.JOB, Mode.POD, Mode.RECOVER, Mode.IN_PLACE, Mode.RETRY, Mode.GRACEFUL, Mode.ELASTIC, Mode.HOT_SWITCH,
    Mode.OPERATOR_RETRY, Mode.LINK_SWITCH, Mode.STRESS_TEST,
)  # fmt: skip
TABLE_3 = (
    Mode.RECOVER, Mode.RETRY, Mode.IN_PLACE, Mode.ELASTIC, Mode.DUMP, Mode.EXIT, Mode.POD, Mode.HOT_SWITCH,
)  # fmt: skip

JOBS_INTRODUCTION = f"""# Jobs: what to write, and what it does

{MADE}

How a fault of a job is handled is chosen in its YAML. `mindie-ha lint FILE…` checks it
([lint.md](lint.md)), `mindie-ha explain FILE` says what will happen: the ladder, the environment that is
injected, every timeout. The tables of this page are the ones that both use.

Job-level rescheduling is the default of every job with `fault-scheduling: "force"` or `"grace"`: all its pods
are deleted, what is broken is isolated, the owner makes the pods anew. Everything narrower is asked for by
name.
"""
LINT_INTRODUCTION = f"""# Lint

{MADE}

`mindie-ha lint FILE…` reads YAML or JSON with any number of documents, folders, and stdin (`-`), and says of
each object what is wrong with it: file and line, place, what is there, why it is wrong, what to do, and the
section of this page. `-o json` and `-o yaml` give the same to machines.

```
mindie-ha lint job.yaml
kubectl get acjob -n mindie -o yaml | mindie-ha lint -
mindie-ha lint manifests/ -o json
```

| Exit code | Meaning |
|---|---|
| 0 | nothing to change; notes may have been told |
| 1 | at least one error or warning |
| 2 | a file cannot be read; what can be is looked at all the same |

**error**: a reader refuses the value, or recovery fails with it. **warning**: it is taken otherwise than
somebody may think. **note**: worth knowing, or not to be seen here; it changes no exit code.

Looked at are: AscendJobs, vcjobs, Deployments and StatefulSets whose pods are rescheduled, the ConfigMaps
`rings-config-*` and `reset-config-*`, the DaemonSet of the device plugin, and the fault reports of
[faults.md](faults.md). A start script inside an image is not seen: of what has to stand in it, lint speaks
only where command, args or env show it.
"""


WEBHOOK = """## Webhook

The same rules can look at AscendJobs and vcjobs while they are applied: `mindie-ha run --webhook` serves a
validating webhook, `manifests/webhook` is a kustomize component that switches it on. `kubectl apply` then
shows errors and warnings as warnings. With `webhook.enforce` an object with errors is not created; a change
of one that is there is never refused, since operator and scheduler have to go on writing it.

It keeps nobody from working: the API server goes on without an answer (`failurePolicy: Ignore`, 3 s), asks
only about jobs, and not in `kube-system` and `mindx-dl`. `mindie_ha_admissions_total` counts the answers.

```
kubectl create secret tls mindie-ha-webhook -n mindx-dl --cert=tls.crt --key=tls.key
```

The certificate is for `mindie-ha-webhook.mindx-dl.svc`; its CA goes into `caBundle` of the
ValidatingWebhookConfiguration, which cert-manager does by the annotation there. Renewed files are used
without a restart. A NetworkPolicy in front of mindie-ha has to let the API server reach port 9443.
"""
INJECTED = """## What the Ascend Operator injects

Into container `ascend`, behind what the user wrote, so that the injected value counts; an `export` in the
start script beats both. Several strategies are united: features sorted, separated by commas.
"""
BESIDE = """
TensorFlow gets none of these. `exit` is what the operator does; its documents say that it injects nothing.
Any text in `recover-strategy`, known or not, also switches the watchdog off as shown. Blanks are not trimmed:
`retry, recover` is retry alone.

Beside them, every job gets:
"""


def cell(text: str) -> str:
    """Text inside a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(map(cell, cells))} |"


def header(*names: str) -> Iterator[str]:
    """The first two lines of a table."""
    yield row(*names)
    yield "|" + "---|" * len(names)


def jobs_page() -> str:
    """docs/jobs.md."""
    lines = [JOBS_INTRODUCTION]
    lines += ["## Which parameter a mode needs\n"]
    lines += header("Parameter", *(TITLES[mode] for mode in TABLE_1))
    for one in PARAMETERS:
        if one.needed_by & set(TABLE_1):
            lines.append(row(f"`{one.name}`", *("✓" if mode in one.needed_by else "" for mode in TABLE_1)))
    lines += ["", "What the Ascend Operator injects needs not be written.", "", "## What a parameter means\n"]
    for place in Place:
        rows = [one for one in PARAMETERS if one.place is place]
        if rows:
            lines += [f"### {place.value[0].upper()}{place.value[1:]}\n", *parameter_table(rows), ""]
    lines += injected_section()
    lines += products_section()
    return "\n".join(lines) + "\n"


def parameter_table(rows: Sequence[Parameter]) -> Iterator[str]:
    """Parameters of one place."""
    rules: dict[str, list[str]] = {}
    for rule in ALL_RULES:
        for name in rule.about:
            rules.setdefault(name, []).append(f"[{rule.code}](lint.md#{rule.code})")
    yield from header("Parameter", "Values", "Default", "Meaning", "Not with", "Read by", "Lint")
    for one in rows:
        values = ", ".join(f"`{value}`" for value in one.values)
        if one.bounds is not None:
            low, high = one.bounds
            values = f"{values} {low}" if low == high else f"{values} {low} to {high}"
        meaning = one.meaning + (" Injected." if one.injected else "")
        if one.frameworks:
            meaning = f"{', '.join(sorted(one.frameworks))}: {meaning}"
        told = ", ".join(rules.get(one.name, []))
        readers = ", ".join(one.read_by)
        yield row(f"`{one.name}`", values.strip(), one.default, meaning, one.conflicts, readers, told)


def injected_section() -> Iterator[str]:
    """Table 3."""
    yield INJECTED
    yield from header("", *(mode.value for mode in TABLE_3))
    for framework in (Framework.PYTORCH, Framework.MINDSPORE):
        yield row(str(framework), *(injected_cell(framework, mode) for mode in TABLE_3))
    yield BESIDE
    yield from header("Job", "Variables")
    yield row("of a MindIE service (labels `app` and `jobID`): only", variables(injected.INFERENCE))
    yield row("any other", variables(injected.COMMON))
    yield row("its pods with NPUs", variables(injected.WITH_CARDS))
    for framework, names in injected.RENDEZVOUS.items():
        yield row(f"its pods with NPUs, {framework}", variables(names))
    yield row("MindSpore without a Scheduler", "nothing")
    yield ""


def injected_cell(framework: Framework, mode: Mode) -> str:
    """One cell of Table 3."""
    found = injected.recovery_environment(
        framework,
        recover_strategy="" if mode in (Mode.POD, Mode.HOT_SWITCH) else mode.value,
        pod_level=mode is Mode.POD,
        hot_switch=mode is Mode.HOT_SWITCH,
    )
    return " ".join(f"`{name}={value}`" for name, value in found.items()) or "-"


def products_section() -> Iterator[str]:
    """Products, frameworks, versions."""
    yield "## Where a mode is supported\n"
    yield from header("Mode", "Products", "Frameworks", "Versions", "Restrictions")
    for one in products.SUPPORT:
        names = ", ".join(
            f"{product} (PyTorch only)" if one.frameworks_on(product) != one.frameworks else str(product)
            for product in one.products
        )
        versions = [f"from {one.since}"] if one.since else []
        versions += [f"up to {one.until}"] if one.until else []
        frameworks = ", ".join(sorted(one.frameworks))
        yield row(TITLES[one.mode], names, frameworks, "; ".join(versions), one.restrictions)


def lint_page() -> str:
    """docs/lint.md."""
    lines = [LINT_INTRODUCTION]
    lines += rules_section("Jobs", JOB_RULES)
    lines += rules_section("Rank tables of jobs (`rings-config-*`)", RINGS_RULES)
    lines += rules_section("Reset configs of jobs (`reset-config-*`)", RESET_RULES)
    lines += rules_section("Device plugin", PLUGIN_RULES)
    lines.append(WEBHOOK)
    return "\n".join(lines)


def rules_section(title: str, rules: Iterable[Rule]) -> Iterator[str]:  # type: ignore[type-arg]
    """The rules of one kind of object."""
    yield f"## {title}\n"
    for rule in rules:
        yield f"### {rule.code}\n"
        on = on_kinds(rule) if title == "Jobs" else ""
        yield f"**{rule.weight}**{on}: {looked_for(rule)} {rule.why[0].upper()}{rule.why[1:]}.\n"
        yield f"*Fix:* {rule.fix}."
        if rule.about:
            yield f"*Parameters:* {', '.join(f'`{name}`' for name in rule.about)} ([jobs.md](jobs.md))."
        yield ""


def on_kinds(rule: Rule) -> str:  # type: ignore[type-arg]
    """The kinds of jobs that a rule is about, unless it is about each."""
    names = {JobKind.ASCEND_JOB: "AscendJobs", JobKind.VC_JOB: "vcjobs", JobKind.POD_SET: "pod sets"}
    return "" if rule.kinds >= JOBS else f", {' and '.join(names[kind] for kind in sorted(rule.kinds))} only"


def looked_for(rule: Rule) -> str:  # type: ignore[type-arg]
    """What the function of a rule looks for, from its docstring."""
    return " ".join((rule.look.__doc__ or "").split())


def variables(names: Iterable[str]) -> str:
    """Names in a cell."""
    return ", ".join(f"`{name}`" for name in names)
