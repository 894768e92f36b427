"""One running control plane: four processes in a folder of their own, on free loopback ports.

`ControlPlane.start` returns when all four are healthy; `stop` ends them, also after a half start. By default
the kernel kills them when this process ends in whatever way; with `detached` they stay, and `attach` finds
them again by the recorded process ids. `kill_apiserver` and `start_apiserver` are for tests of a crash.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.control_plane import credentials
from tools.control_plane.credentials import Credentials
from tools.control_plane.errors import ControlPlaneError

HEALTHY_S = 120.0
POLL_S = 0.1
ASK_S = 5.0
STOP_S = 5.0
START_ATTEMPTS = 3  # a port that was free may be taken before its process binds it
ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
STATE = "state.json"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a test may want to be different."""

    compaction: str = "5m0s"
    """How often the API server lets etcd forget old versions."""
    apiserver: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    """More flags for kube-apiserver and kube-controller-manager."""
    api_alone: bool = False
    """No controllers and no scheduler: nobody but the test writes. Namespaces get no service account."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the processes listen, all on 127.0.0.1."""

    etcd: int
    peer: int
    apiserver: int
    controllers: int
    scheduler: int


@dataclass
class ControlPlane:
    """See the module. `home` is made by `start` and must not hold another one's files."""

    binaries: Path
    home: Path
    options: Options = field(default_factory=Options)
    detached: bool = False

    def __post_init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = Ports(0, 0, 0, 0, 0)
        self._credentials: Credentials | None = None

    # -- what others need ------------------------------------------------------------------------

    @property
    def kubeconfig(self) -> Path:
        """Logs in as cluster admin."""
        return self.home / "kubeconfig"

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self._ports.apiserver}"

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name of those that were started."""
        return dict(self._pids)

    def kubeconfig_for(self, name: str, *, token: str) -> Path:
        """A kubeconfig beside the admin's, for a token of a service account."""
        if self._credentials is None:
            raise ControlPlaneError("the control plane was not started here")
        return self._credentials.kubeconfig(self.home / f"{name}.kubeconfig", token=token)

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything and wait until it is healthy; raises ControlPlaneError, and stops again."""
        for attempt in range(1, START_ATTEMPTS + 1):
            self._prepare()
            try:
                self._launch()
            except ControlPlaneError:
                taken = "address already in use" in "".join(self._log(name) for name in ORDER)
                self.stop()
                if not taken or attempt == START_ATTEMPTS:
                    raise
            except (KeyboardInterrupt, SystemExit):
                self.stop()
                raise
            else:
                return

    def _prepare(self) -> None:
        for name in ("etcd", "certificates", "pki"):
            shutil.rmtree(self.home / name, ignore_errors=True)
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ControlPlaneError(f"{self.home} cannot be made: {error.strerror}") from None
        self._ports = _free_ports()
        self._credentials = credentials.make(self.home / "pki", server=self.server)
        for name, token in self._credentials.tokens.items():
            path = self.kubeconfig if name == "admin" else self.home / f"{name}.kubeconfig"
            self._credentials.kubeconfig(path, token=token)

    def _launch(self) -> None:
        self._spawn("etcd", self._etcd())
        self._wait("etcd", f"http://127.0.0.1:{self._ports.etcd}/health")
        self.start_apiserver()
        if self.options.api_alone:
            return
        self._spawn("kube-controller-manager", self._controllers())
        self._spawn("kube-scheduler", self._scheduler())
        self._wait("kube-controller-manager", f"https://127.0.0.1:{self._ports.controllers}/healthz")
        self._wait("kube-scheduler", f"https://127.0.0.1:{self._ports.scheduler}/healthz")
        # Pods are refused until their namespace has this account; then the controllers really work.
        accounts = f"{self.server}/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("kube-controller-manager", accounts)

    def start_apiserver(self) -> None:
        """Start the API server on the same port and data, and wait until it is ready."""
        self._spawn("kube-apiserver", self._apiserver())
        self._wait("kube-apiserver", f"{self.server}/readyz")

    def kill_apiserver(self) -> None:
        """Kill it as a crash does; every connection breaks."""
        self._end("kube-apiserver", signal.SIGKILL)

    def stop(self) -> None:
        """End all processes, the last started first; never raises."""
        for name in reversed(ORDER):
            # A TERM would make the API server wait a minute for open watches.
            self._end(name, signal.SIGKILL if name == "kube-apiserver" else signal.SIGTERM)
        (self.home / STATE).unlink(missing_ok=True)

    def running(self) -> dict[str, bool]:
        """Which of the processes live."""
        return {name: name in self._pids and self._alive(name) for name in ORDER}

    def healthy(self) -> bool:
        """Whether all live and the API server is ready."""
        return all(self.running().values()) and self._answers(f"{self.server}/readyz")

    # -- processes ---------------------------------------------------------------------------------

    def _spawn(self, name: str, flags: list[str]) -> None:
        command = [str(self.binaries / name), *flags]
        if not self.detached:
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with (self.home / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                command,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[name] = child
        self._pids[name] = child.pid
        state = {"pids": self._pids, "ports": asdict(self._ports), "binaries": str(self.binaries)}
        (self.home / STATE).write_text(json.dumps(state), encoding="utf-8")

    def _end(self, name: str, how: int) -> None:
        if name not in self._pids:
            return
        for each in (how, signal.SIGKILL):
            if self._alive(name):
                with suppress(ProcessLookupError):
                    os.kill(self._pids[name], each)
            if _holds(lambda: not self._alive(name), within_s=STOP_S):
                break
        del self._pids[name]

    def _alive(self, name: str) -> bool:
        if name in self._children:
            return self._children[name].poll() is None
        try:  # another process may have the id by now
            return Path(f"/proc/{self._pids[name]}/exe").readlink() == self.binaries / name
        except OSError:
            return False

    def _wait(self, name: str, url: str) -> None:
        if not _holds(lambda: self._answers(url) or not self._alive(name), within_s=HEALTHY_S):
            raise ControlPlaneError(f"{name} is not healthy after {HEALTHY_S:g} s: {self._last_words(name)}")
        if not self._alive(name):
            raise ControlPlaneError(f"{name} ended at once: {self._last_words(name)}")

    def _answers(self, url: str) -> bool:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only asks whether it lives
        headers = {}
        if url.startswith(self.server) and self._credentials is not None:
            headers["Authorization"] = f"Bearer {self._credentials.tokens['admin']}"
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own loopback addresses
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=ASK_S) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _log(self, name: str) -> str:
        try:
            return (self.home / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _last_words(self, name: str) -> str:
        lines = self._log(name).strip().splitlines() or ["it said nothing"]
        return f"{lines[-1][:300]} (all of it: {self.home / name}.log)"

    # -- flags -------------------------------------------------------------------------------------

    def _etcd(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._ports.etcd, self._ports.peer))
        return [
            "--name=real",
            f"--data-dir={self.home / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=real={peer}",
        ]

    def _apiserver(self) -> list[str]:
        pki = self.home / "pki"
        return [
            f"--etcd-servers=http://127.0.0.1:{self._ports.etcd}",
            f"--etcd-compaction-interval={self.options.compaction}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._ports.apiserver}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--cert-dir={self.home / 'certificates'}",
            f"--token-auth-file={pki / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--profiling=false",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'accounts.pub'}",
            f"--service-account-signing-key-file={pki / 'accounts.key'}",
            *(("--disable-admission-plugins=ServiceAccount",) if self.options.api_alone else ()),
            *self.options.apiserver,
        ]

    def _controllers(self) -> list[str]:
        pki = self.home / "pki"
        return [
            *self._component("controller-manager", self._ports.controllers),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={pki / 'accounts.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--controllers=*,-nodeipam,-route,-cloud-node-lifecycle,-service",
            *self.options.controllers,
        ]

    def _scheduler(self) -> list[str]:
        return self._component("scheduler", self._ports.scheduler)

    def _component(self, user: str, port: int) -> list[str]:
        config = self.home / f"{user}.kubeconfig"
        return [
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--port=0",
            f"--cert-dir={self.home / 'certificates'}",
            "--leader-elect=false",
        ]


def attach(home: Path) -> ControlPlane | None:
    """The control plane that was started in this folder and not stopped; None where there is none."""
    try:
        state = json.loads((home / STATE).read_text(encoding="utf-8"))
        plane = ControlPlane(binaries=Path(state["binaries"]), home=home, detached=True)
        plane._pids = {str(name): int(pid) for name, pid in state["pids"].items()}
        plane._ports = Ports(**state["ports"])
        document = json.loads((home / "kubeconfig").read_text(encoding="utf-8"))
        token = document["users"][0]["user"]["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    plane._credentials = Credentials(home / "pki", plane.server, {"admin": token})
    return plane


def _free_ports() -> Ports:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(5)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


def _holds(condition: Callable[[], bool], *, within_s: float) -> bool:
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(POLL_S)
    return True
