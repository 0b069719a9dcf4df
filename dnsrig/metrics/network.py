"""Traffic between primaries and secondary during `measure`, to within 0.2 s at either end."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial, total


def _over_servers(trial: Trial, source: str, name: str, *roles: str) -> float | None:
    return total(trial.growth(host, source, name) for host in trial.hosts_as(*roles))


@metric(title="TCP connections opened", unit="connections", better="lower", order=30)
def connections_opened(trial: Trial) -> float | None:
    """Active opens (RFC 1213, tcpActiveOpens) of the host under test during `measure`, to within 0.2 s at either
    end."""
    return trial.growth(trial.subject, "tcp", "active_opens")


@metric(title="TIME_WAIT, peak", unit="sockets", better="lower", order=31)
def time_wait_peak(trial: Trial) -> float | None:
    """Largest number of sockets in TIME_WAIT on the host under test at any sample during `measure`, to within 0.2 s."""
    return trial.peak(trial.subject, "sockets", "tcp_time_wait")


@metric(title="TIME_WAIT skipped", unit="sockets", better="neither", order=31)
def time_wait_overflows(trial: Trial) -> float | None:
    """Sockets of the host under test that were closed without TIME_WAIT because the limit tcp_max_tw_buckets was
    reached (Linux, TCPTimeWaitOverflow), during `measure`, to within 0.2 s at either end."""
    return trial.growth(trial.subject, "tcp", "time_wait_overflow")


@metric(title="volume", unit="B", better="lower", order=32)
def transfer_bytes(trial: Trial) -> float | None:
    """Bytes of all frames between primaries and secondary, both directions, Ethernet headers included, during
    `measure`, to within 0.2 s at either end."""
    return trial.links_growth(trial.record.spec.primaries, "rx_bytes", "tx_bytes")


@metric(title="packets", unit="packets", better="lower", order=33)
def transfer_packets(trial: Trial) -> float | None:
    """Packets between primaries and secondary as the interfaces count them, both directions, during `measure`, to
    within 0.2 s at either end. Segmentation offload makes one packet of up to 64 kB, so this is fewer than on a
    wire."""
    return trial.links_growth(trial.record.spec.primaries, "rx_packets", "tx_packets")


@metric(title="retransmissions", unit="segments", better="lower", order=34)
def retransmissions(trial: Trial) -> float | None:
    """TCP segments sent again by the hosts of primaries, secondary, resolver, frontend and databases during `measure`,
    to within 0.2 s at either end."""
    return _over_servers(trial, "tcp", "retrans_segs", "primary", "secondary", "resolver", "frontend", "database")


@metric(title="UDP receive buffer errors", unit="datagrams", better="lower", order=35)
def udp_buffer_errors(trial: Trial) -> float | None:
    """Datagrams that the hosts of primaries, secondary, resolver and frontend dropped because of a full socket buffer
    during `measure`, to within 0.2 s at either end."""
    servers = trial.hosts_as("primary", "secondary", "resolver", "frontend")
    return total(trial.udp_growth(host, "rcvbuf_errors") for host in servers)


@metric(title="listen drops", unit="connections", better="lower", order=36)
def listen_drops(trial: Trial) -> float | None:
    """Connections that the primaries' hosts dropped at a listening socket during `measure`, to within 0.2 s at either
    end."""
    return _over_servers(trial, "tcp", "listen_drops", "primary")
