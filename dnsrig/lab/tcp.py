"""TCP of a host: congestion control and segment size, set by its routes, a clamp on its SYNs, and read back.

Routes also decide for servers that choose nothing themselves. The congestion control of a route (ip-route(8), congctl)
applies to every connection over it, made or accepted, unless a program sets another on its socket. In a network
namespace of its own a host may have any that the kernel has, even one that
`net.ipv4.tcp_allowed_congestion_control` keeps from ordinary programs.

The clamp lowers the largest segment (RFC 9293 §3.7.1) that SYNs from and to a host name, as routers before narrow paths
do. It is a rule of nftables in the host's network namespace, written through netlink, so no program is needed.
"""

from __future__ import annotations

import platform
import socket
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.nftables.main import NFTables

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.lab.host import Host, inside

PORT = 9
"""discard (RFC 863): nothing listens there."""
NAME_BYTES = 16
"""TCP_CA_NAME_MAX of the kernel."""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/lib/modules")
PREFIX = "tcp_"
NOT_CONTROLS = {"tcp_diag"}
"""Modules beside them that begin in the same way."""
TABLE = "dnsrig"
HOOKS = ("input", "output")
PROTOCOL_OFFSETS = {socket.AF_INET: 9, socket.AF_INET6: 6}
"""Offset of the protocol in the headers of IPv4 (RFC 791, 3.1) and IPv6 (RFC 8200, 3, without extension headers)."""
TCP = 6
FLAGS_OFFSET, SYN = 13, 2
MSS_OPTION = 2
MSS_VALUE_OFFSET, MSS_VALUE_BYTES = 2, 2
"""Offsets in the header of TCP, and in an option (RFC 9293, 3.1 and 3.2)."""

MANGLE_PRIORITY = -150
"""NF_IP_PRI_MANGLE of linux/netfilter_ipv4.h; what follows is of linux/netfilter/nf_tables.h: NFT_REG_1, …"""
REGISTER = 1
NETWORK_HEADER, TRANSPORT_HEADER = 1, 2
TCP_OPTION = 1
EQUAL, NOT_EQUAL = 0, 1
ACCEPT = 1
"""NF_ACCEPT of linux/netfilter.h."""


@cache
def congestion_controls() -> tuple[str, ...]:
    """List the names that ip-route(8) takes for ``congctl``: in the kernel and in its modules, sorted."""
    present = AVAILABLE.read_text().split() if AVAILABLE.exists() else []
    return tuple(sorted({*present, *loadable_controls(MODULES, platform.release())}))


def loadable_controls(modules: Path, release: str) -> set[str]:
    """Find the modules of a kernel on disk, which it loads if a route asks for one (tcp(7), CAP_NET_ADMIN)."""
    folder = modules / release / "kernel/net/ipv4"
    names = {path.name.partition(".")[0] for path in folder.glob(f"{PREFIX}*.ko*")}
    return {name.removeprefix(PREFIX) for name in names - NOT_CONTROLS}


def route_metrics(host: Host) -> dict[str, str | int]:
    """What the routes of ``host`` say to TCP, as pyroute2 takes it; empty where nothing was asked for."""
    asked = {"cc_algo": host.spec.congestion, "advmss": host.spec.advmss_bytes}
    return {name: value for name, value in asked.items() if value is not None}


def settle(host: Host, neighbours: Sequence[Host]) -> dict[str, Any]:
    """What ``host`` was asked to have and has, after its links were made; and the clamp on segments, which is set
    here."""
    found: dict[str, Any] = {}
    spec = host.spec
    if spec.congestion is not None:
        obtained = {there.name: obtained_congestion(host, there) for there in neighbours}
        if wrong := {name for name in obtained.values() if name != spec.congestion}:
            raise DnsrigError(
                f"connections of host {host.name} have the congestion control {wrong.pop()}, not {spec.congestion}",
                hint='kernel = "uml" runs the trial under a stock kernel',
            )
        found["congestion"] = {"requested": spec.congestion, "obtained": spec.congestion if obtained else None}
    if spec.advmss_bytes is not None:
        found["advmss_bytes"] = spec.advmss_bytes
    if spec.mss_clamp_bytes is not None:
        clamp_mss(host, spec.mss_clamp_bytes)
        found["mss_clamp_bytes"] = spec.mss_clamp_bytes
    return found


def obtained_congestion(here: Host, there: Host) -> str:
    """What a connection of ``here`` to ``there`` has once its SYN is sent: it need not be answered."""
    with inside(here.namespace), socket.socket(here.family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        sock.connect_ex((str(there.address), PORT))
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES).rstrip(b"\0").decode()


def refused(host: Host, error: NetlinkError) -> UsageError:
    """What it means that the kernel refused the routes of ``host``: most likely a congestion control that it lacks."""
    return UsageError(
        f"the kernel refuses routes with {route_metrics(host)} on host {host.name}: {error}",
        hint=f'it has the congestion controls {", ".join(congestion_controls())}; kernel = "uml" has more',
    )


def clamp_mss(host: Host, nbytes: int) -> None:
    """No SYN that leaves or reaches ``host`` over the family of its trial names more than ``nbytes`` from now on."""
    with inside(host.namespace):
        tables = NFTables(nfgen_family=host.family)
    try:
        tables.table("add", name=TABLE)
        for hook in HOOKS:
            tables.chain("add", table=TABLE, name=hook, hook=hook, priority=MANGLE_PRIORITY, policy=ACCEPT)
            tables.rule("add", table=TABLE, chain=hook, expressions=[clamp_rule(nbytes, host.family)])
    except NetlinkError as error:
        raise UsageError(
            f"this kernel cannot lower the MSS of host {host.name}: {error}",
            hint="try `modprobe nf_tables`; otherwise set advmss_bytes on the host at the other end",
        ) from error
    finally:
        tables.close()


def clamp_rule(nbytes: int, family: socket.AddressFamily = socket.AF_INET) -> list[dict[str, Any]]:
    """Make the expressions of a rule: if TCP and SYN, write ``nbytes`` to the option maximum segment size."""
    value = struct.pack("!H", nbytes)
    return [
        _expression("payload", dreg=REGISTER, base=NETWORK_HEADER, offset=PROTOCOL_OFFSETS[family], len=1),
        _expression("cmp", sreg=REGISTER, op=EQUAL, data=_data(bytes([TCP]))),
        _expression("payload", dreg=REGISTER, base=TRANSPORT_HEADER, offset=FLAGS_OFFSET, len=1),
        _expression("bitwise", sreg=REGISTER, dreg=REGISTER, len=1, mask=_data(bytes([SYN])), xor=_data(b"\0")),
        _expression("cmp", sreg=REGISTER, op=NOT_EQUAL, data=_data(b"\0")),
        _expression("immediate", dreg=REGISTER, data=_data(value)),
        _expression(
            "exthdr", type=MSS_OPTION, offset=MSS_VALUE_OFFSET, len=MSS_VALUE_BYTES, op=TCP_OPTION, sreg=REGISTER
        ),
    ]


def _expression(name: str, **fields: Any) -> dict[str, Any]:
    attributes = [(f"NFTA_{name.upper()}_{field.upper()}", value) for field, value in fields.items()]
    return {"attrs": [("NFTA_EXPR_NAME", name), ("NFTA_EXPR_DATA", {"attrs": attributes})]}


def _data(value: bytes) -> dict[str, Any]:
    return {"attrs": [("NFTA_DATA_VALUE", value)]}
