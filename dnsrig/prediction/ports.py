"""The port wall: one connection a zone cannot go on faster than ports come free.

Who closes a TCP connection first keeps its port in TIME_WAIT for 60 s (Linux; RFC 9293 §3.6.1 asks for twice the
maximum segment lifetime). From one address to one server's port there are as many connections as there are ephemeral
ports: so the first 28,232 zones are free, and each further batch waits for the one before. What fails to connect then
waits for a retry timer as well, which S1 saw (66 to 181 s for 30,000 zones), so this is a lower bound.
"""

from __future__ import annotations

SOURCE = "S1: P. Spacek, 28,232 ports and 60 s of TIME_WAIT (2024)"
PORTS = 60_999 - 32_768 + 1
"""Linux' default ip_local_port_range, both ends counted."""
TIME_WAIT_S = 60.0


def time_s(connections: int, ports: int = PORTS) -> float:
    """The least time for ``connections``, one after another from the same address to the same server."""
    if connections < 0 or ports < 1:
        raise ValueError(f"{connections} connections with {ports} ports")
    return TIME_WAIT_S * (max(0, connections - 1) // ports)


def connections_per_s(ports: int = PORTS) -> float:
    """What can be kept up: 470.5 with the default range."""
    return ports / TIME_WAIT_S
