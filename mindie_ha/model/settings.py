"""Every setting, grouped by concern, with its unit in its name and its reason beside it.

Unknown keys are refused. Cross-field rules are checked here so that a wrong file fails at start.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from ipaddress import ip_network
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

MAX_WINDOW_S = 7 * 86_400.0
MAX_LEASE_S = 300


class Section(BaseModel):
    """Base of every group: immutable, unknown keys refused, every number finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Owner(StrEnum):
    """Who deletes pods of jobs that ask for rescheduling."""

    MINDIE_HA = "mindie-ha"
    VOLCANO = "volcano"


class FaultFeed(StrEnum):
    """Where faults of cards, switches and boards are read."""

    DEVICE_PLUGIN = "device-plugin"
    CLUSTERD = "clusterd"


class ChipIsolation(StrEnum):
    """How one card is kept free that the scheduler's list does not show."""

    NODE_TAINT = "node-taint"
    PUBLIC_FAULT = "public-fault"


class PeerCheckMode(StrEnum):
    """What becomes of a subscriber whose address belongs to nobody of the service."""

    ENFORCE = "enforce"
    WARN = "warn"
    OFF = "off"


class HttpAuth(StrEnum):
    """Who may change something over HTTP."""

    AUTO = "auto"
    TOKEN_REVIEW = "token-review"  # noqa: S105 - the name of an API
    OFF = "off"


class PhaseSettings(Section):
    """Deadlines of the Kubernetes rungs (seconds)."""

    isolate_s: float = Field(5.0, gt=0, description="wait for the isolation to be visible in the API")
    withdraw_grace_s: float = Field(7.0, ge=0, description="grace: time for consumers to drop the instance")
    stop_s: float = Field(10.0, gt=0, description="deletes not accepted by then are repeated after back-off")
    stop_grace_s: float = Field(900.0, gt=0, description="grace: force after this long")
    gone_s: float = Field(60.0, gt=0, description="force: old pods still there by then go to the next rung")
    recreate_s: float = Field(30.0, gt=0, description="owner has not re-created the pods by then")
    capacity_patience_s: float = Field(5.0, ge=0, description="no place for so long is WaitingForCapacity")
    table_s: float = Field(60.0, gt=0, description="instance table not complete by then")
    settle_s: float = Field(30.0, gt=0, description="this long without a new fault closes the recovery")
    startup_s: float = Field(1800.0, gt=0, description="replacement must be ready within")
    unverified_after_s: float = Field(600.0, gt=0, description="without a readiness probe: Running this long")
    place_pod_to_rack_s: float = Field(3.0, gt=0, description="ra-block: not placed by then goes to the rack")
    place_block_to_next_s: float = Field(
        6.0,
        gt=0,
        description="sp-block: not placed by then goes to the super-pod; one level of many each time",
    )
    rejoin_s: float = Field(900.0, gt=0, description="training: all ranks have to be back together by then")
    place_pod_to_job_s: float = Field(12.0, gt=0, description="pod rung not placed by then goes to job")
    list_lag_s: float = Field(5.0, ge=0, description="lag of the device list where it cannot be observed")


class FaultSettings(Section):
    """When something counts as a fault."""

    node_not_ready_s: float = Field(15.0, ge=0, description="NotReady must last this long")
    release_after_s: float = Field(
        300.0, ge=0, description="an isolation ends this long after its fault healed"
    )
    public_codes_file: str = Field(
        "", description="table of public fault codes and reporters; empty: the documented defaults"
    )
    public_suspect_after_s: float = Field(
        86_400.0, ge=0, description="a public fault not reported again for this long is marked; 0: never"
    )
    chip_isolation: ChipIsolation = Field(
        ChipIsolation.NODE_TAINT,
        description="a card that the device plugin does not report: `node-taint` keeps the whole node free,"
        " `public-fault` tells ClusterD of the card (docs/isolation.md)",
    )
    mark_resource: str = Field(
        "CCAE", min_length=1, description="public-fault: the reporter we are for ClusterD, one that it knows"
    )
    mark_code: str = Field(
        "020001001", min_length=9, max_length=9, description="public-fault: a code that ClusterD separates"
    )
    manual_threshold: int = Field(
        3, ge=1, description="the isolation that makes so many within manual_window_s lasts until released"
    )
    manual_window_s: float = Field(86_400.0, gt=0, description="the window of manual_threshold")
    report_stale_s: float = Field(600.0, gt=0, description="a device report older than this is no report")
    resetting_s: float = Field(600.0, gt=0, description="a card in reset for longer than this is faulty")
    graceful_reset_s: float = Field(
        120.0, ge=0, description="graceful fault tolerance: the device plugin may reset a card for so long"
    )
    source: FaultFeed = Field(
        FaultFeed.DEVICE_PLUGIN,
        description="`device-plugin`: the reports of device plugin and NodeD; `clusterd`: the lists it fused",
    )


class BudgetSettings(Section):
    """Back-off and attempts of the pod and job rungs."""

    backoff_first_s: float = Field(10.0, gt=0)
    backoff_max_s: float = Field(600.0, gt=0)
    stable_s: float = Field(
        600.0, gt=0, description="back-off and attempts start anew after this stable time"
    )
    max_attempts: int = Field(10, ge=1, description="without a stable stretch; then park")
    max_concurrent_recoveries_per_service: int = Field(
        0, ge=0, description="so many of a service delete and rebuild at the same time; 0: no limit"
    )
    max_concurrent_recoveries_per_cluster: int = Field(0, ge=0, description="the same of the cluster")
    grant_retries_after_s: float = Field(
        30.0, ge=0, description="Running this long without remain-retry-times"
    )


class BrakeSettings(Section):
    """Fleet brake: too many nodes lost at once look like our blindness, not like their failure."""

    lost_nodes_min: int = Field(3, ge=1, description="so many lost nodes never put the brake on")
    lost_nodes_share: float = Field(0.30, gt=0, le=1, description="nor does this share of the fleet")
    window_s: float = Field(300.0, gt=0, description="nodes lost within this time count together")
    release_s: float = Field(600.0, gt=0, description="then it lifts if more than half of the fleet is Ready")


class Window(Section):
    """One maintenance window, again and again."""

    cron: str = Field(description="when it begins: minute hour day month weekday")
    duration_s: float = Field(gt=0, le=MAX_WINDOW_S)
    time_zone: str = Field("UTC", description="of `cron`, for example Asia/Shanghai")

    @property
    def zone(self) -> tzinfo:
        """The time zone. Raises ValueError where the system does not know it."""
        try:
            return UTC if self.time_zone == "UTC" else ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, OSError):
            raise ValueError(f"{self.time_zone[:64]!r} is no time zone of this system") from None

    @model_validator(mode="after")
    def _fires(self) -> Self:
        try:
            first = next(CronSim(self.cron, datetime(2000, 1, 1, tzinfo=self.zone)), None)
        except CronSimError as error:
            raise ValueError(f"{self.cron[:64]!r} is no cron expression: {error}") from None
        if first is None:
            raise ValueError(f"{self.cron[:64]!r} never fires")
        return self


class MaintenanceSettings(Section):
    """Times in which deletions are held, as if the cluster were paused (docs/operations.md)."""

    windows: tuple[Window, ...] = Field(
        (), description="each `{cron, duration_s, time_zone}`; inside one no deletion starts", max_length=100
    )


class Flavor(StrEnum):
    """Which MS pods run in the cluster: their endpoints differ."""

    MOTOR = "motor"
    PYMOTOR = "pymotor"


class MsLadder(StrEnum):
    """The first rung of a Controller or Coordinator with two pods and without the label pod-rescheduling."""

    JOB = "job"
    POD = "pod"


class StateLost(StrEnum):
    """What follows when a rebuilt Controller does not get its service to serve again."""

    PARK = "park"
    RESTART_SERVERS = "restart-servers"


class RoleSettings(Section):
    """Who of Controller and Coordinator is active, and what follows from it (docs/recovery.md)."""

    ask: bool = Field(True, description="ask MS pods by HTTP; off: only streams and Ready conditions count")
    flavor: Flavor = Field(
        Flavor.MOTOR, description="the endpoints to ask: `motor` (MindIE-Motor) or `pymotor`"
    )
    failover_s: float = Field(
        45.0, gt=0, description="pod rung: certainly nobody active for so long is answered by the job rung"
    )
    unsubscribed_s: float = Field(
        4200.0, ge=60, description="a Ready Controller that stays away from us for so long has given up"
    )
    state_lost_s: float = Field(
        1800.0, ge=60, description="a rebuilt Controller has to get the Coordinators Ready within"
    )
    controller_state_lost: StateLost = Field(
        StateLost.PARK, description="if it does not: `park` it, or `restart-servers` first"
    )
    ms_default_ladder: MsLadder = Field(
        MsLadder.JOB, description="`pod`: two MS pods count as active and standby without the label, too"
    )
    label_pods: bool = Field(False, description="keep the label mindie-ha.io/ms-state on MS pods")
    status_port: int = Field(1029, ge=1, le=65535, description="of Coordinators (motor): readiness, health")
    management_port: int = Field(
        1026,
        ge=1,
        le=65535,
        description="of Coordinators (motor: recvs_info), Controllers, and all of PyMotor",
    )
    timeout_s: float = Field(1.5, gt=0, lt=2, description="a pod has to answer a question within (real time)")
    quick_s: float = Field(2.0, ge=0.5, description="between questions while something is uncertain")
    slow_s: float = Field(30.0, ge=1, description="between questions otherwise; doubles up to this")
    parallel: int = Field(8, ge=1, le=64, description="pods asked at the same time, of the whole cluster")
    tls: bool = Field(False, description="MS pods speak TLS on these ports, as they ship")
    tls_verify: bool = Field(True, description="off: any certificate is taken")
    tls_ca: str = Field(
        "", description="PEM file that their certificates must be signed by; empty: the system's"
    )
    tls_server_name: str = Field(
        "", description="the name in their certificates; empty: the name is not looked at"
    )
    tls_cert: str = Field("", description="PEM file that we show; with tls_key")
    tls_key: str = Field("", description="PEM file")


class RestartUnlinked(StrEnum):
    """Who is restarted where it stays without a link to a rebuilt Prefill."""

    NONE = "none"
    DECODE = "decode"


class CoupledSettings(Section):
    """Decodes that stay unlinked after a Prefill was rebuilt (docs/recovery.md); TLS is that of `roles`."""

    restart_unlinked: RestartUnlinked = Field(
        RestartUnlinked.NONE, description="`decode`: restart Decodes that stay unlinked, one at a time"
    )
    after_s: float = Field(600.0, ge=10, description="so long both run without a link")
    recent_s: float = Field(7200.0, ge=60, description="and the rebuild is younger than this")
    max_restarts: int = Field(1, ge=1, le=5, description="of Decodes, for one rebuild of a Prefill")
    port: int = Field(1026, ge=1, le=65535, description="of the management API of server pods")


class OwnershipSettings(Section):
    """Who acts."""

    owner: Owner = Owner.MINDIE_HA
    guard_s: float = Field(15.0, ge=0, description="guard: act after this long without the owner acting")


class TableSettings(Section):
    """The global rank table and its delivery."""

    peer_hold_s: float = Field(600.0, ge=0, description="a new P waits this long for a D, and the reverse")
    gather_s: float = Field(2.0, ge=0, description="a new instance waits this long for placed siblings")
    empty_ms_after_s: float = Field(10.0, ge=0, description="groups 0/1 may be empty after this long")
    push_targets: tuple[str, ...] = Field(
        (), description="URLs that get every table by POST; {namespace} and {job_id} are filled in"
    )
    push_timeout_s: float = Field(5.0, gt=0, le=9, description="a push target has to answer within")


class GrpcSettings(Section):
    """The gRPC face (facts of the wire: rank table contract §4.1)."""

    listen: str = ":8899"
    upstream: str = Field("", description="host:port of ClusterD's second Service; empty: none")
    upstream_tls_ca: str = Field("", description="PEM file; with it the upstream is dialled with TLS")
    upstream_tls_cert: str = Field("", description="PEM file; what we show to the upstream, if it asks")
    upstream_tls_key: str = Field("", description="PEM file")
    upstream_tls_name: str = Field("", description="name in its certificate, if not that of `upstream`")
    tls_cert: str = Field("", description="PEM file; with it and tls_key the server speaks TLS")
    tls_key: str = Field("", description="PEM file; all PEM files are read again when they change")
    tls_client_ca: str = Field("", description="PEM file; clients must show a certificate that it signed")
    peer_check: PeerCheckMode = Field(
        PeerCheckMode.WARN, description="who gets a service's tables: enforce, warn or off (docs/security.md)"
    )
    trusted_proxies: tuple[str, ...] = Field(
        (), description="addresses or networks that answer for those behind them: sidecars, gateways"
    )
    max_message_bytes: int = Field(
        4 << 20, ge=1 << 16, le=64 << 20, description="larger requests are refused"
    )
    max_connections: int = Field(1024, ge=1, description="further ones are closed")
    max_connections_per_address: int = Field(512, ge=1, description="the youngest above it are closed")
    max_streams_per_connection: int = Field(64, ge=1, description="further ones wait at the client")
    max_calls_per_address: int = Field(1024, ge=1, description="open calls; further ones are refused")
    max_subscribers: int = Field(1024, ge=1, description="open streams; further ones are refused")
    max_subscribers_per_address: int = Field(512, ge=1, description="of them from one address")
    max_registrations: int = Field(10_000, ge=1, description="job ids remembered; idle ones go first")
    max_unread_bytes_per_address: int = Field(
        8 << 20, ge=1 << 20, description="above it an address waits until it has read what is on its way"
    )
    idle_connection_s: float = Field(300.0, ge=1, description="a connection without a call is closed after")
    handshake_s: float = Field(20.0, ge=1, description="a connection that says nothing is closed after")

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for text in networks:
            ip_network(text, strict=False)  # raises ValueError with the text
        return networks

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if self.tls_client_ca and not (self.tls_cert and self.tls_key):
            raise ValueError("grpc.tls_client_ca needs grpc.tls_cert and grpc.tls_key")
        if (
            self.upstream_tls_cert or self.upstream_tls_key or self.upstream_tls_name
        ) and not self.upstream_tls_ca:
            raise ValueError("grpc.upstream_tls_cert, …_key and …_name need grpc.upstream_tls_ca")
        return self


class HttpSettings(Section):
    """The HTTP face."""

    listen: str = ":8080"
    max_body_bytes: int = Field(1 << 20, ge=1024, description="larger requests are refused")
    auth: HttpAuth = Field(
        HttpAuth.AUTO,
        description="changes need a token: token-review; in a pod or from another machine: auto; never: off",
    )
    open_reads: bool = Field(True, description="reading needs no token")
    tls_cert: str = Field("", description="PEM file; with it and tls_key the server speaks TLS")
    tls_key: str = Field("", description="PEM file; all PEM files are read again when they change")
    tls_client_ca: str = Field(
        "", description="PEM file; all but the probes need a client certificate that it signed"
    )
    max_connections: int = Field(1024, ge=1, description="the youngest above it are closed")
    max_connections_per_address: int = Field(256, ge=1, description="the youngest above it are closed")
    max_requests_per_s: float = Field(100.0, gt=0, description="from one address; others are answered 429")

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if bool(self.tls_cert) != bool(self.tls_key) or (self.tls_client_ca and not self.tls_cert):
            raise ValueError("http.tls_cert and http.tls_key belong together; http.tls_client_ca needs both")
        return self


class WebhookSettings(Section):
    """The validating webhook on job manifests (manifests/webhook, docs/lint.md)."""

    enabled: bool = Field(False, description="serve it; `run --webhook` does")
    listen: str = ":9443"
    enforce: bool = Field(
        False, description="refuse to create what has errors; otherwise errors are warnings, too"
    )
    tls_cert: str = Field("", description="PEM file; the API server asks by TLS only")
    tls_key: str = Field("", description="PEM file")

    @model_validator(mode="after")
    def _has_tls(self) -> Self:
        if self.enabled and not (self.tls_cert and self.tls_key):
            raise ValueError("webhook.enabled needs webhook.tls_cert and webhook.tls_key")
        return self


class ClusterSettings(Section):
    """How we talk to Kubernetes."""

    namespace: str = Field("mindx-dl", description="ours: isolation ledgers, Lease")
    request_timeout_s: float = Field(10.0, gt=0, description="the API server has to answer within")
    watch_timeout_s: float = Field(290.0, gt=0, description="a watch is opened anew this often")
    inactivity_s: float = Field(
        90.0, gt=0, description="a silent watch is opened anew (bookmarks come each minute)"
    )
    relist_s: float = Field(
        3600.0, gt=0, description="lists are taken anew this often, whatever the watch says"
    )
    page_size: int = Field(200, ge=1, description="objects a list page; a page is decoded in one go")
    parallel_writes: int = Field(32, ge=1, description="writes under way at the same time")
    writes_per_s: float = Field(200.0, gt=0, description="bound on the rate of writes")


class LeaseSettings(Section):
    """Which of several replicas leads (docs/operations.md)."""

    name: str = Field("mindie-ha", min_length=1, max_length=63, description="of the Lease in our namespace")
    duration_s: int = Field(15, ge=1, le=MAX_LEASE_S, description="not renewed for so long: another leads")
    renew_s: float = Field(5.0, gt=0, description="the leader renews this often")
    retry_s: float = Field(5.0, gt=0, description="one request for the Lease has to be answered within")

    @model_validator(mode="after")
    def _survives_two_failures(self) -> Self:
        if self.renew_s + 2 * self.retry_s > self.duration_s:
            raise ValueError("lease.renew_s + 2 * lease.retry_s must not be above lease.duration_s")
        return self


class Settings(Section):
    """The whole configuration; every value has a default that is safe in production."""

    phases: PhaseSettings = PhaseSettings()
    faults: FaultSettings = FaultSettings()
    budgets: BudgetSettings = BudgetSettings()
    brakes: BrakeSettings = BrakeSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    ownership: OwnershipSettings = OwnershipSettings()
    roles: RoleSettings = RoleSettings()
    coupled: CoupledSettings = CoupledSettings()
    table: TableSettings = TableSettings()
    grpc: GrpcSettings = GrpcSettings()
    http: HttpSettings = HttpSettings()
    webhook: WebhookSettings = WebhookSettings()
    cluster: ClusterSettings = ClusterSettings()
    lease: LeaseSettings = LeaseSettings()
    dry_run: bool = False

    @model_validator(mode="after")
    def _times_fit_together(self) -> Self:
        if self.budgets.backoff_first_s > self.budgets.backoff_max_s:
            raise ValueError("budgets.backoff_first_s must not be above budgets.backoff_max_s")
        fused = self.faults.source is FaultFeed.CLUSTERD
        if fused and self.faults.chip_isolation is ChipIsolation.PUBLIC_FAULT:
            raise ValueError(
                "faults.chip_isolation must not be public-fault where faults.source is clusterd: "
                "our own mark would come back as a fault"
            )
        if self.roles.quick_s > self.roles.slow_s:
            raise ValueError("roles.quick_s must not be above roles.slow_s")
        if bool(self.roles.tls_cert) != bool(self.roles.tls_key):
            raise ValueError("roles.tls_cert and roles.tls_key go together")
        if self.coupled.after_s >= self.coupled.recent_s:
            raise ValueError("coupled.after_s must be below coupled.recent_s")
        if self.phases.settle_s > self.phases.startup_s:
            raise ValueError("phases.settle_s must not be above phases.startup_s")
        if self.cluster.inactivity_s > self.cluster.watch_timeout_s:
            raise ValueError("cluster.inactivity_s must not be above cluster.watch_timeout_s")
        return self
