"""Queueing disciplines and offloads of an interface in a namespace: the two things asked of the kernel directly,
without pyroute2."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from typing import Any

from pyroute2 import NetNS
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST
from pyroute2.netlink.rtnl import RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import sched_netem, tcmsg

from dnsrig.lab.host import inside

NETLINK_HEADER_BYTES = 16
ANSWER_LIMIT_S = 5.0
NEW = NLM_F_CREATE | NLM_F_EXCL
SIOCETHTOOL = 0x8946
ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO = 0x1F, 0x24, 0x2C


def netem(
    namespace: str, interface: str, handle: int, parent: int | None, options: dict[str, Any], flags: int = NEW
) -> None:
    """Make a queueing discipline, or change one (``flags`` 0). Raises OSError if the kernel refuses.

    Message and exchange (netlink(7)) are our own: what pyroute2 makes of the option ``rate`` is no message (0.9.7 takes
    it for TCA_RATE as well).
    """
    with inside(namespace), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.settimeout(ANSWER_LIMIT_S)
        sock.send(message(socket.if_nametoindex(interface), handle, parent, options, flags))
        answer = sock.recv(1 << 16)
    (code,) = struct.unpack_from("i", answer, NETLINK_HEADER_BYTES)
    if code:
        raise OSError(-code, os.strerror(-code))


def message(index: int, handle: int, parent: int | None, options: dict[str, Any], flags: int) -> bytes:
    """What asks the kernel for a queueing discipline, and for an answer."""
    made = tcmsg()
    made["header"]["type"], made["header"]["flags"] = RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK | flags
    made["index"], made["handle"] = index, handle
    made["parent"] = TC_H_ROOT if parent is None else parent | 1
    made["attrs"] = [("TCA_KIND", "netem"), ("TCA_OPTIONS", sched_netem.get_parameters(options))]
    made.encode()
    return bytes(made.data)


def no_offload(namespace: str, interface: str) -> None:
    """No segments larger than a packet on this interface, of TCP (ethtool(8): tso, gso, gro) or of UDP (ip-link(8):
    gso_max_segs)."""
    with NetNS(namespace) as route:
        route.link("set", index=route.link_lookup(ifname=interface)[0], gso_max_segs=1)
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO):
            value = array.array("I", [command, 0])
            address, _ = value.buffer_info()
            fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), address))
