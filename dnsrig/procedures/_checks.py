"""Which manipulation checks a spec has: those of its procedure, and those that any procedure may need. Pure."""

from __future__ import annotations

import math

from dnsrig.procedures import procedure
from dnsrig.rundir import TrialSpec
from dnsrig.servers import driver


def declared(spec: TrialSpec) -> list[str]:
    """The names of the checks that ``spec`` has, those of its procedure first."""
    return [*procedure(spec.procedure).checks(spec), *common(spec)]


def common(spec: TrialSpec) -> list[str]:
    """What experiments ask of hosts and links, whatever the procedure."""
    hosts = spec.hosts.values()
    paths = [(link, path) for link in spec.links for path in (link.forward, link.reverse) if path is not None]
    subject = spec.hosts[spec.subject]
    shows = subject.server is not None and driver(subject.server.kind).settings_command
    limited = any(host.advmss_bytes or host.mss_clamp_bytes for host in hosts)
    found = {
        "path": any(link.emulated for link in spec.links),
        "congestion": any(host.congestion for host in hosts),
        "mss": limited,
        "packets-too-large": not limited and any((path.mtu_bytes or math.inf) < link.mtu_bytes for link, path in paths),
        "sysctls": any(host.sysctls for host in hosts),
        "unsigned-refused": spec.transfer.tsig and any(host.role == "primary" for host in hosts),
        "storage": any(host.server is not None for host in hosts),
        "settings-in-force": bool(subject.settings and shows),
        "kernel": True,
    }
    return [name for name, applies in found.items() if applies]
