"""The webhook: findings as warnings; a refusal only where it is asked for, and only of something new."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.intake.lints import admission
from mindie_ha.model.errors import InputError
from tests.intake.fuzzing import FUZZED
from tests.intake.job_patches import Patch, label, patched
from tests.intake.job_variants import COORDINATOR, TENSORFLOW


def nothing(body: object) -> None:
    """The base as it is."""


def review(base: str, patch: Patch, *, operation: str = "CREATE") -> dict[str, Any]:
    return {
        "apiVersion": admission.API_VERSION,
        "kind": admission.KIND,
        "request": {
            "uid": "review-1",
            "operation": operation,
            "namespace": "mindie",
            "object": patched(base, patch, kind="AscendJob").body,
        },
    }


def answered(body: dict[str, Any], *, enforce: bool) -> dict[str, Any]:
    found = admission.answer(admission.read(body), enforce=enforce)
    assert (found["apiVersion"], found["kind"]) == (admission.API_VERSION, admission.KIND)
    response = found["response"]
    assert isinstance(response, dict)
    assert response["uid"] == "review-1"
    return response


ERROR = label("pod-rescheduling", "true")
WARNING = label("fault-retry-times", None)


@pytest.mark.parametrize(
    ("body", "enforce", "allowed", "warned"),
    [
        (review(COORDINATOR, nothing), True, True, False),
        (review(COORDINATOR, ERROR), False, True, True),
        (review(COORDINATOR, ERROR), True, False, False),
        (review(COORDINATOR, ERROR, operation="UPDATE"), True, True, True),
        (review(TENSORFLOW, WARNING), True, True, True),
    ],
    ids=["clean", "error-is-told", "error-is-refused", "never-on-update", "warning-never-refuses"],
)
def test_answers(body: dict[str, Any], *, enforce: bool, allowed: bool, warned: bool) -> None:
    response = answered(body, enforce=enforce)
    assert (response["allowed"], "warnings" in response) == (allowed, warned)
    if warned:
        assert all(len(text) <= admission.MAX_WARNING for text in response["warnings"])
    if not allowed:
        assert response["status"]["code"] == 422
        assert "pod-rescheduling-value" in response["status"]["message"]


def test_what_is_no_job_is_allowed() -> None:
    body = review(COORDINATOR, nothing)
    body["request"]["object"] = {"kind": "Secret", "metadata": {"name": "a"}}
    assert answered(body, enforce=True) == {"uid": "review-1", "allowed": True}
    body["request"]["object"] = None
    assert answered(body, enforce=True) == {"uid": "review-1", "allowed": True}


@pytest.mark.parametrize(
    "body",
    [{}, {"kind": "AdmissionReview"}, {**review(COORDINATOR, nothing), "request": {"uid": ""}}],
    ids=["empty", "no-version", "no-uid"],
)
def test_what_is_no_question_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        admission.read(body)


@FUZZED
@given(
    request=st.dictionaries(
        st.sampled_from(["uid", "operation", "object", "namespace"]),
        st.none()
        | st.text(max_size=5)
        | st.dictionaries(
            st.sampled_from(["kind", "metadata", "spec"]), st.text(max_size=5) | st.just("AscendJob")
        ),
    )
)
def test_no_question_breaks_it(request: dict[str, Any]) -> None:
    body = {"apiVersion": admission.API_VERSION, "kind": admission.KIND, "request": request}
    try:
        asked = admission.read(body)
    except InputError:
        return
    admission.answer(asked, enforce=True)
