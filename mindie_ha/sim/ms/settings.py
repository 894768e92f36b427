"""How MindIE MS behaves, as numbers.

Defaults are those of the real consumer (source: motor contract §1.2, §1.3, §1.5, §3.1), so that the
embedded cluster is as slow, as patient and as impatient as a real one. Network waits (`connect_wait_s`)
are real seconds; everything else is read on the injected clock.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MsSettings:
    """Behaviour of MS Controller and MS Coordinator; all durations in seconds."""

    cluster_port: int = 8899
    """Port of the table server; its host comes from env MINDX_SERVER_IP."""
    connect_wait_s: float = 60.0
    """How long one attempt waits for the channel, in real seconds."""
    connect_attempts: int = 60
    """After so many attempts the client gives up for good, as the real one does."""
    connect_pause_s: float = 1.0
    register_attempts: int = 300
    """Register calls of one stream cycle; then an alarm and a new cycle."""
    register_pause_s: float = 1.0
    boot_poll_s: float = 1.0
    """How often the boot script looks whether the mounted table is completed."""
    detecting_s: float = 5.0
    """`rank_table_detecting_seconds`: how often the Controller re-reads its table file."""
    first_table_wait_s: float = 6.0
    """The longest wait for a first pushed table before the file of the boot is used."""
    synchronization_s: float = 1.0
    """`cluster_synchronization_seconds`: how often the Controller tells Coordinators about instances."""
    lease_s: float = 20.0
    """Lock of an active replica that died, where there is a standby."""
    leader_poll_s: float = 5.0
    leads_first: tuple[str, ...] = ()
    """Pods (`namespace/name`) that get the very first lock of their role; the others hold back until then."""
    stale_links: tuple[str, ...] = ()
    """Jobs (`namespace/name`) whose pods never link to a peer that was rebuilt while they ran."""
    prefill_distributed: bool = False
    """`p_node_config.enable_dist_dp_server`; with the next one it decides what `deploy_server` means."""
    decode_distributed: bool = True
    """`d_node_config.enable_dist_dp_server`; the two defaults are the deploy script's: 0 = P, 1 = D."""
    joins_new_streams: bool = False
    """Imitate the known defect: once a stream has ended, the client blocks on each one it opens again, so the
    other stream stays down until that one ends."""
    serve_http: bool = True
    """Serve the probe and management ports on the pod's own address; off on virtual time."""
    tls_cert: str = ""
    """PEM file; with it and `tls_key` these ports speak TLS."""
    tls_key: str = ""
    tls_client_ca: str = ""
    """PEM file; who asks must show a certificate that it signed."""


__all__ = ["MsSettings"]
