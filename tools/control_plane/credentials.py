"""Keys, certificates, tokens and kubeconfig files of one control plane; throw-away, readable by their owner.

People and components log in with static tokens; service accounts with tokens that the API server signs. The
serving certificate is valid for loopback and for the in-cluster name of the API server.
"""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.control_plane.errors import ControlPlaneError

NAMES = (
    "IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
)
USERS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}
"""Static tokens: our name, the user name in Kubernetes, its group."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the files are; all below one folder."""

    folder: Path
    server: str
    tokens: dict[str, str]

    @property
    def authority(self) -> Path:
        """The certificate that signed the API server's."""
        return self.folder / "ca.crt"

    def kubeconfig(self, path: Path, *, token: str) -> Path:
        """Write a kubeconfig for whoever has this token."""
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        cluster = {"server": self.server, "certificate-authority-data": authority}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "real", "user": {"token": token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
            "current-context": "real",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")  # JSON is YAML
        return path


def make(folder: Path, *, server: str) -> Credentials:
    """Make everything new in an empty folder; raises ControlPlaneError."""
    folder.mkdir(mode=0o700)
    _make_certificates(folder)
    _openssl(folder, "genrsa -out accounts.key 2048")
    _openssl(folder, "rsa -in accounts.key -pubout -out accounts.pub")
    tokens = {name: secrets.token_hex(16) for name in USERS}
    lines = [f'{tokens[name]},{user},{name},"{group}"\n' for name, (user, group) in USERS.items()]
    (folder / "tokens.csv").touch(mode=0o600)
    (folder / "tokens.csv").write_text("".join(lines), encoding="ascii")
    return Credentials(folder, server, tokens)


def _make_certificates(folder: Path) -> None:
    """An authority, and the API server's certificate signed by it."""
    new, days = "-newkey rsa:2048 -nodes", "-days 3650"
    usage = "-addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature"
    _openssl(folder, f"req -x509 {new} {days} -subj /CN=test-ca -keyout ca.key -out ca.crt {usage}")
    _openssl(folder, f"req {new} -subj /CN=kube-apiserver -keyout apiserver.key -out apiserver.csr")
    (folder / "names").write_text(f"subjectAltName={NAMES}\n", encoding="ascii")
    signer = "-CA ca.crt -CAkey ca.key -CAcreateserial"
    _openssl(folder, f"x509 -req -in apiserver.csr {signer} {days} -extfile names -out apiserver.crt")


def _openssl(folder: Path, arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments.split()], cwd=folder, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise ControlPlaneError(f"openssl {arguments.split(maxsplit=1)[0]} failed: {said}")
