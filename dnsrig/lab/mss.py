"""Lowers the largest segment (RFC 9293 §3.7.1) that SYNs from and to a host name, as routers before narrow paths do.

A rule of nftables in the host's own network namespace, written through netlink: no program is needed. It never raises a
value.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.nftables.main import NFTables

from dnsrig.errors import UsageError
from dnsrig.lab.host import Host, inside

TABLE = "dnsrig"
HOOKS = ("input", "output")
PROTOCOL_OFFSETS = {socket.AF_INET: 9, socket.AF_INET6: 6}
"""In the headers of IPv4 (RFC 791, 3.1) and IPv6 (RFC 8200, 3): what follows, for TCP without extension headers."""
TCP = 6
FLAGS_OFFSET, SYN = 13, 2
MSS_OPTION = 2
MSS_VALUE_OFFSET, MSS_VALUE_BYTES = 2, 2
"""In the header of TCP, and in that of its options (RFC 9293, 3.1 and 3.2)."""

MANGLE_PRIORITY = -150
"""NF_IP_PRI_MANGLE of linux/netfilter_ipv4.h; what follows is of linux/netfilter/nf_tables.h: NFT_REG_1, …"""
REGISTER = 1
NETWORK_HEADER, TRANSPORT_HEADER = 1, 2
TCP_OPTION = 1
EQUAL, NOT_EQUAL = 0, 1
ACCEPT = 1
"""NF_ACCEPT of linux/netfilter.h."""


def clamp(host: Host, nbytes: int) -> None:
    """No SYN that leaves or reaches ``host`` over the family of its trial names more than ``nbytes`` from now on."""
    with inside(host.namespace):
        tables = NFTables(nfgen_family=host.family)
    try:
        tables.table("add", name=TABLE)
        for hook in HOOKS:
            tables.chain("add", table=TABLE, name=hook, hook=hook, priority=MANGLE_PRIORITY, policy=ACCEPT)
            tables.rule("add", table=TABLE, chain=hook, expressions=[rule(nbytes, host.family)])
    except NetlinkError as error:
        raise UsageError(
            f"this kernel cannot lower the MSS of host {host.name}: {error}",
            hint="try `modprobe nf_tables`; otherwise set advmss_bytes on the host at the other end",
        ) from error
    finally:
        tables.close()


def rule(nbytes: int, family: socket.AddressFamily = socket.AF_INET) -> list[dict[str, Any]]:
    """The expressions of: TCP, with SYN, so write ``nbytes`` to the option maximum segment size."""
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
