"""Unbound, NLnet Labs: a resolver.

It asks the primaries for everything at or below the longest suffix that all zones share, and nobody else: a trial has
no Internet. Nothing is signed, so it does not validate. Settings are attributes of ``server:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from dnsrig.rundir import Scalar
from dnsrig.servers import keys
from dnsrig.servers.driver import DNS_PORT, Driver, Feature, Placement, Setting, Support, Zone, template, yes_no

CONFIGURATION = template("""\
server:
    interface: {{ p.address }}@{{ port }}
{% if p.over_tls %}
    interface: {{ p.address }}@{{ keys.XOT_PORT }}
    tls-port: {{ keys.XOT_PORT }}
    tls-service-key: "{{ p.private_key }}"
    tls-service-pem: "{{ p.certificate }}"
{% endif %}
    port: {{ port }}
    do-ip6: no
    access-control: 0.0.0.0/0 allow
    username: ""
    chroot: ""
    directory: "{{ p.seen_state }}"
    pidfile: ""
    use-syslog: no
    verbosity: 1
    do-not-query-localhost: no
    local-zone: "{{ suffix }}" transparent
{% for name, value in settings.items() %}
    {{ name }}: {{ value }}
{% endfor %}
remote-control:
    control-enable: no
stub-zone:
    name: "{{ suffix }}"
{% for route in p.routes %}
    stub-addr: {{ route.primary }}@{{ port }}
{% endfor %}
""")

LOG_TIME = re.compile(r"^\[(?P<time>\d{9,12})\] ")


class Unbound(Driver):
    kind = "unbound"
    title = "Unbound"
    executable = "unbound"
    packages = ("unbound",)
    version_arguments = ("-V",)
    version_pattern = r"Version (\d+\.\d+\S*)"
    roles = ("resolver",)
    answers_zones = False
    settings = (
        Setting("num-threads", "1", "threads that answer (set by dnsrig to the host's CPUs)"),
        Setting("so-reuseport", "yes", "a socket a thread, among which the kernel divides the queries"),
        Setting("outgoing-range", "4096 or 960", "sockets for queries to authorities, a thread; depends on the build"),
        Setting("num-queries-per-thread", "half of outgoing-range", "queries being resolved at once, a thread"),
        Setting("incoming-num-tcp", "10", "TCP and TLS connections accepted at once, a thread; the excess waits"),
        Setting("msg-cache-size", "4m", "cache of whole answers"),
        Setting("rrset-cache-size", "4m", "cache of RRsets"),
        Setting("cache-max-ttl", "86400", "seconds; 0 keeps nothing, which no operator does"),
        Setting("module-config", '"validator iterator"', "set by dnsrig to the iterator alone: nothing here is signed"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {"DoT": Support(None, None, "1.4.14")}
    log_clock_resolution_ns = 1_000_000_000

    def configure(self, placement: Placement) -> None:
        ours: dict[str, Scalar] = {
            "num-threads": placement.threads,
            "so-reuseport": "yes",
            "module-config": '"iterator"',
        }
        text = CONFIGURATION.render(
            p=placement,
            port=DNS_PORT,
            keys=keys,
            suffix=common_suffix(placement.zones),
            settings={name: yes_no(value) for name, value in {**ours, **placement.settings}.items()},
        )
        (placement.directory / "unbound.conf").write_text(text)

    def command(self, placement: Placement) -> list[str]:
        return [self.executable, "-d", "-p", "-c", f"{placement.seen_directory}/unbound.conf"]

    def log_time_ns(self, line: str) -> int | None:
        match = LOG_TIME.match(line)
        return int(match["time"]) * 1_000_000_000 if match else None


def common_suffix(zones: Iterable[Zone]) -> str:
    """The longest name at or below which all ``zones`` lie; the root where they share nothing."""
    labels = [zone.name.rstrip(".").split(".")[::-1] for zone in zones]
    shared = []
    for level in zip(*labels):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return ".".join(reversed(shared)) or "."
