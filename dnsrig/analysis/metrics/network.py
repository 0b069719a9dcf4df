"""What went over the link between primary and secondary, during `measure`, to within 0.2 s at either end."""

from __future__ import annotations

from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial

LINK = "link:primary"


def _sum(*parts: float | None) -> float | None:
    present = [part for part in parts if part is not None]
    return sum(present) if len(present) == len(parts) else None


@metric(title="TCP connections opened", unit="connections", better="lower", order=30)
def connections_opened(trial: Trial) -> float | None:
    """Active opens (RFC 1213, tcpActiveOpens) of the secondary's host during `measure`, to within 0.2 s at either end."""
    return trial.growth("secondary", "tcp", "active_opens")


@metric(title="TIME_WAIT, peak", unit="sockets", better="lower", order=31)
def time_wait_peak(trial: Trial) -> float | None:
    """Most sockets in TIME_WAIT on the secondary's host at any sample during `measure`, to within 0.2 s."""
    return trial.peak("secondary", "sockets", "tcp_time_wait")


@metric(title="volume", unit="B", better="lower", order=32)
def transfer_bytes(trial: Trial) -> float | None:
    """Octets of all frames between primary and secondary, both directions, Ethernet headers included, during `measure`, to within 0.2 s at either end."""
    return _sum(*(trial.growth("secondary", LINK, name) for name in ("rx_bytes", "tx_bytes")))


@metric(title="packets", unit="packets", better="lower", order=33)
def transfer_packets(trial: Trial) -> float | None:
    """Packets between primary and secondary as the interface counts them, both directions, during `measure`, to within 0.2 s at either end. Segmentation
    offload makes one packet of up to 64 kB, so this is fewer than on a wire."""
    return _sum(*(trial.growth("secondary", LINK, name) for name in ("rx_packets", "tx_packets")))


@metric(title="retransmissions", unit="segments", better="lower", order=34)
def retransmissions(trial: Trial) -> float | None:
    """TCP segments sent again by the primary's and the secondary's hosts during `measure`, to within 0.2 s at either end."""
    return _sum(*(trial.growth(host, "tcp", "retrans_segs") for host in ("primary", "secondary")))


@metric(title="UDP receive buffer errors", unit="datagrams", better="lower", order=35)
def udp_buffer_errors(trial: Trial) -> float | None:
    """Datagrams that the primary's and the secondary's hosts dropped for a full socket buffer during `measure`, to within 0.2 s at either end."""
    return _sum(*(trial.growth(host, "udp", "rcvbuf_errors") for host in ("primary", "secondary")))


@metric(title="listen drops", unit="connections", better="lower", order=36)
def listen_drops(trial: Trial) -> float | None:
    """Connections that the primary's host dropped at a listening socket during `measure`, to within 0.2 s at either end."""
    return trial.growth("primary", "tcp", "listen_drops")
