"""dnsdist, PowerDNS: a load balancer in front of a server of the trial.

Settings are functions of one argument, e.g. ``setMaxTCPClientThreads = 4``, options of its one backend, e.g.
``"server.sockets" = 2``, and ``cache``, the number of answers that its packet cache keeps (0: it has none).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from dnsrig.rundir import Role
from dnsrig.servers.driver import Driver, Feature, Setting, Support
from dnsrig.servers.placement import Placement

CACHE = "cache"
OF_BACKEND = "server."


class Dnsdist(Driver):
    kind = "dnsdist"
    title = "dnsdist"
    executable = "dnsdist"
    packages = ("dnsdist",)
    arguments = ("--supervised", "--disable-syslog", "-C", "{folder}/dnsdist.conf")
    configuration_file = "dnsdist.conf"
    templates: ClassVar[Mapping[Role, str]] = {"frontend": "dnsdist.conf.j2"}
    check_command = ("dnsdist", "--check-config", "-C", "{folder}/dnsdist.conf")
    template_variables: ClassVar[Mapping[str, str]] = {
        "settings": "list of pairs: a function in Lua, and its argument",
        "cache": "number of answers that the packet cache keeps; 0 without one",
        "backend_options": "option of `newServer` in Lua -> value",
    }
    version_arguments = ("--version",)
    version_pattern = r"dnsdist (\d+\.\d+\S*)"
    roles = ("frontend",)
    answers_zones = False
    settings = (
        Setting(CACHE, "0", "answers that its packet cache keeps; 0: every query goes to the backend"),
        Setting("server.sockets", "1", "UDP sockets to the backend"),
        Setting("setMaxTCPClientThreads", "10", "threads for connections of clients"),
        Setting("setMaxUDPOutstanding", "65535", "UDP queries that wait for the backend, a socket"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        "DoT": Support(None, None, frontend="1.3"),
        "DoH": Support(None, None, frontend="1.4"),
    }
    proxied = frozenset({"udp", "tcp", "dot"})
    why_not_proxied = "dnsrig sets up UDP, TCP and DoT"
    log_clock_resolution_ns = 1_000_000_000  # on standard output its lines have no time

    def variables(self, placement: Placement) -> dict[str, Any]:
        chosen = dict(placement.settings)
        cache = chosen.pop(CACHE, 0)
        backend = {name: value for name, value in chosen.items() if name.startswith(OF_BACKEND)}
        return {
            "settings": [(name, json.dumps(value)) for name, value in chosen.items() if name not in backend],
            "cache": cache,
            "backend_options": {n.removeprefix(OF_BACKEND): json.dumps(value) for n, value in backend.items()},
        }
