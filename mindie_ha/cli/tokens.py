"""Who we say we are to a controller's API: the bearer token that goes with a `--server`.

`--token-file` (or `MINDIE_HA_TOKEN_FILE`) names a file with a token, or a kubeconfig whose current user has
one. Without it a command in a pod shows the token of its service account where it changes something.
A token is read when it is sent, and stands in no message.
"""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from mindie_ha.model.errors import InputError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
MAX_BYTES = 1 << 20


class Server(str):
    """The URL of a controller, and where the token for it is."""

    __slots__ = ("token_file",)
    token_file: Path | None

    @classmethod
    def of(cls, url: str, token_file: Path | None) -> Server:
        """Both together."""
        found = cls(url)
        found.token_file = token_file
        return found


def headers(server: str, *, method: str) -> dict[str, str]:
    """What proves who we are; empty where nothing does. Raises InputError."""
    named = server.token_file if isinstance(server, Server) else None
    if named is None and method != "GET" and "KUBERNETES_SERVICE_HOST" in os.environ:
        named = SERVICE_ACCOUNT if SERVICE_ACCOUNT.is_file() else None
    if named is None:
        return {}
    token = _token(named)
    if not token.isascii() or len(token.split()) != 1:
        raise InputError("holds no token", where=f"--token-file {named}", advice="one token, or a kubeconfig")
    return {"Authorization": f"Bearer {token}"}


def _token(path: Path) -> str:
    try:
        with path.open("rb") as file:  # also a pipe, as of <(kubectl create token …)
            text = file.read(MAX_BYTES).decode()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=f"--token-file {path}") from None
    except UnicodeDecodeError:
        raise InputError("is not text", where=f"--token-file {path}") from None
    return _of_kubeconfig(text, path) if "current-context" in text else text.strip()


def _of_kubeconfig(text: str, path: Path) -> str:
    """The token of the current user."""
    where = f"--token-file {path}"
    try:
        config = yaml.safe_load(text)
        contexts = {one["name"]: one["context"] for one in config["contexts"]}
        users = {one["name"]: one["user"] for one in config["users"]}
        user = users[contexts[config["current-context"]]["user"]]
        token, beside = user.get("token"), user.get("tokenFile")
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        raise InputError("is no kubeconfig with a current user", where=where) from None
    if isinstance(token, str):
        return token
    if isinstance(beside, str):
        return _token(path.parent / beside)
    advice = "kubectl create token NAME > FILE"
    raise InputError(
        "its current user has no token, and certificates are of no use", where=where, advice=advice
    )
