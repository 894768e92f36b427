"""Kubeconfig files: written for the embedded server, read for whichever server the actors are to work on.

Only what a file can say by itself is supported: server, certificate authority, token, client certificate,
password. Exec plugins and auth providers are refused with the reason instead of being ignored.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used: which file, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a server: base URL, headers that authenticate, TLS (None: plain HTTP)."""

    server: str
    headers: dict[str, str]
    tls: ssl.SSLContext | None


def render(server: str, *, namespace: str = "default") -> str:
    """A kubeconfig for a server that asks for no credentials."""
    name = "mindie-ha-sim"
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": server}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
            "current-context": name,
        },
        sort_keys=False,
    )


def write(path: Path, server: str, *, namespace: str = "default") -> None:
    """Write a kubeconfig whole or not at all, readable by its owner alone; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(render(server, namespace=namespace))
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path) -> Access:
    """The access that the file's current context gives; raises KubeconfigError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise KubeconfigError(
            f"{path}: is not a kubeconfig; expected a mapping with clusters, users, contexts"
        )
    context = _named(document, "contexts", str(document.get("current-context", "")), "context", path)
    cluster = _named(document, "clusters", str(context.get("cluster", "")), "cluster", path)
    user_name = str(context.get("user", ""))
    user = _named(document, "users", user_name, "user", path) if user_name else {}
    server = str(cluster.get("server", "")).rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise KubeconfigError(f"{path}: cluster.server must be an http:// or https:// URL, got {server!r}")
    for unsupported in ("exec", "auth-provider"):
        if unsupported in user:
            raise KubeconfigError(
                f"{path}: user {user_name!r} logs in through {unsupported!r}, which is not supported here; "
                "use a token or a client certificate"
            )
    tls = _tls(path, cluster, user) if server.startswith("https://") else None
    return Access(server, _headers(path, user), tls)


def _named(document: dict[str, Any], section: str, name: str, inner: str, path: Path) -> dict[str, Any]:
    for entry in document.get(section) or []:
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(inner) or {}
            if isinstance(found, dict):
                return found
    raise KubeconfigError(f"{path}: {section} has no entry named {name!r}; check current-context")


def _headers(path: Path, user: dict[str, Any]) -> dict[str, str]:
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = _content(path, user, "tokenFile").decode("ascii", "replace").strip()
    if token:
        return {"authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def _content(path: Path, section: dict[str, Any], field: str) -> bytes:
    """What `field-data` (base64) or `field` (a file beside the kubeconfig) holds; empty where neither is."""
    try:
        if section.get(f"{field}-data"):
            return base64.b64decode(str(section[f"{field}-data"]), validate=True)
        return (path.parent / str(section[field])).read_bytes() if section.get(field) else b""
    except (OSError, binascii.Error) as error:
        raise KubeconfigError(f"{path}: {field} cannot be read: {error}") from None


def _tls(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = _content(path, cluster, "certificate-authority")
    certificate, key = _content(path, user, "client-certificate"), _content(path, user, "client-key")
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate and key:
            _load_pair(context, certificate, key)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise KubeconfigError(f"{path}: certificates cannot be used: {error}") from None
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """`ssl` reads a pair from files only: one of our own (mode 0600) that goes at once."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)
