"""Certificates in files that somebody else renews while we run.

A Secret's files change under a running process, so they are looked at for every new connection (three
`stat` calls) and read again when they differ. Only a set that fits together replaces the one before:
certificate and key that do not match, or files that change while they are read, leave what worked in use,
and that is told once. Connections that are open keep what they were opened with.

The files are looked at from threads of gRPC too; nothing here belongs to the event loop.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from mindie_ha.channels.errors import ServerNotStarted
from mindie_ha.channels.settings import TlsFiles

Heard = Callable[[bool, str], None]
"""Told of every renewal: whether it is in use now, and a sentence."""

_Signature = tuple[tuple[int, int, int], ...]


def unheard(used: bool, text: str) -> None:
    """Nobody listens."""
    del used, text


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """What the files held when they fitted together; PEM. Never printed."""

    key: bytes
    cert: bytes
    ca: bytes | None

    def __repr__(self) -> str:
        return "TlsMaterial(…)"


class TlsWatch:
    """One set of files; `where` names the settings (`grpc.tls`) in errors; a `client` needs no pair."""

    def __init__(self, files: TlsFiles, *, where: str, heard: Heard = unheard, client: bool = False) -> None:
        self._files = files
        self._client = client
        self._where = where
        self._heard = heard
        self._lock = threading.Lock()
        self._seen: _Signature = ()
        self._current: TlsMaterial | None = None

    def load(self) -> TlsMaterial:
        """What is in the files now. Raises ServerNotStarted with the setting and the path."""
        with self._lock:
            before = self._signature()
            self._current = self._read()
            self._seen = before
            return self._current

    def current(self) -> TlsMaterial:
        """The newest set that fitted together. Raises ServerNotStarted if there never was one."""
        self.renewed()
        return self._current or self.load()

    def renewed(self) -> TlsMaterial | None:
        """The files' new content if it changed since the last call and fits together, else None."""
        with self._lock:
            try:
                before = self._signature()
                if before == self._seen:
                    return None
                self._seen = before
                found = self._read()
                if self._signature() != before:
                    self._seen = ()  # written while we read: the next connection looks again
                    return None
            except ServerNotStarted as error:
                self._heard(False, f"{error}; the certificate before is still used")
                return None
            if found == self._current:
                return None
            self._current = found
        self._heard(True, f"{self._where}: the files were renewed; new connections use them")
        return found

    def server_context(self) -> ssl.SSLContext:
        """A context for an HTTP server; a client may show a certificate, which is checked then."""
        context = self._context(anonymous=False)
        if self._files.ca_path:
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _signature(self) -> _Signature:
        found = []
        for path in (self._files.key_path, self._files.cert_path, self._files.ca_path):
            try:
                stat = Path(path).stat() if path else None
            except OSError:
                stat = None
            found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat is not None else (0, 0, 0))
        return tuple(found)

    def _read(self) -> TlsMaterial:
        files = self._files
        anonymous = self._client and not files.cert_path and not files.key_path
        found = TlsMaterial(
            key=b"" if anonymous else self._file("key", files.key_path),
            cert=b"" if anonymous else self._file("cert", files.cert_path),
            ca=self._file("ca", files.ca_path) if files.ca_path else None,
        )
        self._context(anonymous=anonymous)  # whether they fit together
        return found

    def _context(self, *, anonymous: bool) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            if not anonymous:
                context.load_cert_chain(self._files.cert_path, self._files.key_path)
            if self._files.ca_path:
                context.load_verify_locations(self._files.ca_path)
        except (ssl.SSLError, OSError) as error:
            raise self._unusable(error) from None
        return context

    def _file(self, part: str, path: str) -> bytes:
        if not path:
            raise ServerNotStarted(
                "is not set", where=f"{self._where}_{part}", advice="give the path of a PEM file"
            )
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise ServerNotStarted(
                f"cannot be read: {error.strerror}",
                where=f"{self._where}_{part} {path}",
                advice="certificate and key are PEM files that this process can read",
            ) from None

    def _unusable(self, error: Exception) -> ServerNotStarted:
        reason = getattr(error, "reason", "") or getattr(error, "strerror", "") or type(error).__name__
        return ServerNotStarted(
            f"cannot be used: {reason}",
            where=f"{self._where}_cert {self._files.cert_path}",
            advice="certificate, key and CA are PEM files that belong together",
        )


def server_credentials(watch: TlsWatch) -> Any:
    """Credentials of a gRPC server that follow the files; reads them. Raises ServerNotStarted."""
    first = watch.load()

    def renewed() -> Any:
        found = watch.renewed()
        return _configuration(found) if found is not None else None

    return grpc.dynamic_ssl_server_credentials(
        _configuration(first), renewed, require_client_authentication=first.ca is not None
    )


def _configuration(found: TlsMaterial) -> Any:
    return grpc.ssl_server_certificate_configuration([(found.key, found.cert)], root_certificates=found.ca)


__all__ = ["Heard", "TlsMaterial", "TlsWatch", "server_credentials", "unheard"]
