"""Protobuf bodies: what kubectl sends, and what nobody should."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.sim import protobuf

# `kubectl create` of 1.32, recorded on the wire.
CONFIG_MAP = base64.b64decode(
    "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiEKFwoBYxIAGgZtaW5kaWUiACoAMgA4AEIAEgYKAWESAWIaACIA"
)
DEPLOYMENT = base64.b64decode(
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50Eq0BCiEKAWQSABoGbWluZGllIgAqADIAOABCAFoICgNhcHASAWQSeggAEgoK"
    "CAoDYXBwEgFkGmIKGgoAEgAaACIAKgAyADgAQgBaCAoDYXBwEgFkEkQSJgoHYnVzeWJveBIHYnVzeWJveCoAQgBqAHIAgAEA"
    "iAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA"
)


def test_config_map() -> None:
    assert protobuf.decode(CONFIG_MAP) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "mindie", "generation": 0},
        "data": {"a": "b"},
    }


def test_deployment_keeps_zero_replicas_and_nested_lists() -> None:
    deployment = protobuf.decode(DEPLOYMENT)
    assert deployment["spec"]["replicas"] == 0
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": "d"}}
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("busybox", "busybox")


def message(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def envelope(api_version: bytes, kind: bytes, body: bytes) -> bytes:
    return b"k8s\0" + message(1, message(1, api_version) + message(2, kind)) + message(2, body)


def test_embedded_structs_and_special_types() -> None:
    quantity = message(1, message(1, b"cpu") + message(2, message(1, b"500m")))
    port = bytes([1 << 3, 0, 2 << 3, 80])
    probe = message(1, message(2, message(2, port)))  # Probe.handler, httpGet, port
    container = message(1, b"c") + message(8, message(1, quantity)[2:]) + message(11, probe)
    pod = protobuf.decode(envelope(b"v1", b"Pod", message(2, message(2, container))))
    assert pod["spec"]["containers"] == [
        {"name": "c", "resources": {"limits": {"cpu": "500m"}}, "readinessProbe": {"httpGet": {"port": 80}}}
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"k8s\0",
        b"k8s\0\xff",
        b"k8s\0\x0a\x7f",
        envelope(b"v1", b"Nothing", b""),
        envelope(b"v1", b"ConfigMap", b"\x0b"),
        envelope(b"v1", b"ConfigMap", b"\x08\x01"),
        envelope(b"v1", b"ConfigMap", message(1, message(1, b"\xff"))),
    ],
)
def test_broken_bodies_are_one_error(raw: bytes) -> None:
    with pytest.raises(protobuf.ProtobufError):
        protobuf.decode(raw)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_an_error(body: bytes) -> None:
    try:
        pod: Any = protobuf.decode(envelope(b"v1", b"Pod", body))
    except protobuf.ProtobufError:
        return
    assert pod["kind"] == "Pod"
