"""Templates of configurations: their variables, how they are rendered, and their limits.

A template is Jinja in a sandbox: it reads no file and calls nothing of dnsrig. An undefined name is an error. A
template of a user is rendered in a process of its own (`dnsrig.sandbox`). Before anything starts, it is rendered with
`EXAMPLE`, so that a mistake is found then. Drivers render their own templates, which are files beside them, from the
same variables.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2
from jinja2 import nodes, visitor

from dnsrig import sandbox
from dnsrig.errors import UsageError
from dnsrig.rundir import OwnFile, Resolving
from dnsrig.sandbox import TemplateError
from dnsrig.servers import keys
from dnsrig.servers.formats import numbers
from dnsrig.servers.placement import DNS_PORT, PROXY_PORTS, Placement
from dnsrig.servers.resolving import ANCHOR_FILE

MOST_CHARACTERS = 1 << 20
"""Limit for a template: the longest manual of a server is shorter."""
INCLUDE_FOLDER = "include"
"""Folder in the server's folder: the user's snippet is the only file in it."""
Variables = Mapping[str, Any]

EXAMPLE: Variables = {
    "role": "primary",
    "address": "192.0.2.1",
    "addresses": ["192.0.2.1", "2001:db8::1"],
    "port": DNS_PORT,
    "tls_port": keys.XOT_PORT,
    "threads": 1,
    "folder": "/mnt/server",
    "state": "/mnt/state",
    "version": [9, 20, 30],
    "sockets": True,
    "zones": [
        {"name": "a.example", "file": "/mnt/dataset/a", "route": 0},
        {"name": "b.example", "file": "/mnt/dataset/b", "route": 0},
    ],
    "signed": False,
    "suffix": "example",
    "primaries": ["192.0.2.2"],
    "routes": [{"number": 1, "address": "192.0.2.2", "port": DNS_PORT, "source": ""}],
    "secondaries": ["192.0.2.3"],
    "catalog": "",
    "transfer": {"tls": False, "quic": False, "tsig": False, "ixfr": False, "notify": False, "updates": False},
    "tsig": {"name": keys.TSIG_NAME, "algorithm": keys.TSIG_ALGORITHM, "secret": "AAAA"},
    "over_tls": False,
    "over_https": False,
    "https_port": keys.HTTPS_PORT,
    "over_quic": False,
    "proxied": False,
    "backend_proxied": False,
    "proxy_port": PROXY_PORTS["udp"],
    "proxy_tls_port": PROXY_PORTS["dot"],
    "certificate": "/mnt/state/certificate",
    "private_key": "/mnt/state/key",
    "tls_name": keys.TLS_NAME,
    "public_key_pin": "AAAA",
    "database": None,
    "hints": "",
    "anchor": "",
    "resolving": Resolving().model_dump(),
    "include": "",
    "include_folder": "/mnt/server/include",
    "settings": {},
}
"""Every variable, with a value of the right shape."""
MEANINGS: Mapping[str, str] = {
    "role": "`primary`, `secondary`, `resolver` or `frontend`",
    "version": "the numbers of the server's version, as a list",
    "threads": "number of the host's CPUs",
    "address": "the address at which the server is asked, and from which it asks",
    "addresses": "the addresses at which it listens: `address`, and the host's address of the other family",
    "port": "port for UDP and TCP: 53",
    "tls_port": "port for TLS, and for QUIC over UDP: 853",
    "over_tls": "whether it listens for TLS at `tls_port`",
    "over_quic": "whether it listens for QUIC at `tls_port`",
    "https_port": "port for DNS over HTTPS: 443. The path is `/dns-query`",
    "over_https": "whether it listens at `https_port`",
    "proxied": "whether it also listens where clients announce themselves with the PROXY protocol",
    "backend_proxied": "for a frontend: whether it announces its clients to the server behind it with the PROXY protocol",
    "proxy_port": "port for UDP and TCP with the PROXY protocol: 8053",
    "proxy_tls_port": "port for TLS with the PROXY protocol: 8853",
    "certificate": "path of the certificate for TLS",
    "private_key": "path of its private key",
    "folder": "folder of its configuration, which the server can only read",
    "state": "folder in which the server may write",
    "sockets": "whether the path of `state` is short enough for a Unix socket",
    "zones": "the zones of the configuration. Each has `name`, `file` (path of its zone file, for a primary) and `route` "
    "(place in `routes`, for a secondary)",
    "signed": "whether the zones are signed",
    "suffix": "the longest name at or below which all zones are",
    "catalog": "name of the catalog zone; empty without one. A secondary has only this zone in `zones`",
    "primaries": "for a secondary or a resolver: addresses of the primaries",
    "routes": "for a secondary, a resolver or a frontend: a list of `address` and `port` of a primary, `source` (own address from which "
    "to ask; empty: any) and `number` (from 1)",
    "secondaries": "for a primary: addresses to notify",
    "transfer": "`tls`, `quic`, `tsig`, `ixfr`, `notify`, `updates`: whether zone transfers have it",
    "tsig": "the TSIG key, used if `transfer.tsig`: `name`, `algorithm`, `secret`",
    "tls_name": "the name in a primary's certificate",
    "public_key_pin": "SHA-256 of the public key in the certificate, in Base64",
    "database": "`address`, `port` and `tls` of the database that carries the zones; none without one",
    "hints": "for a resolver: path of the root hints; empty if it asks `primaries`",
    "anchor": "for a resolver that validates: path of the trust anchor; otherwise empty",
    "resolving": "for a resolver: all keys of `resolving`",
    "include": "path of the user's snippet; empty without one",
    "include_folder": "folder in which the snippet is the only file",
    "settings": "the settings of the experiment",
}
"""Meaning of every variable."""


def _port_asked(p: Placement, resolves: bool) -> int:
    """The port at which a server is asked for zones or answers."""
    if p.backend_proxied:
        return PROXY_PORTS["udp"]
    return keys.XOT_PORT if p.transfer.tls and not resolves else DNS_PORT


def variables(p: Placement, include_name: str = "") -> dict[str, Any]:
    """The variables for the server of a placement. Paths are as the server sees them. ``include_name``: name of the
    file of the snippet."""
    over_quic = p.transfer.quic
    transfer = {"tls": p.transfer.tls and not over_quic, "quic": over_quic, "tsig": p.transfer.tsig}
    transfer |= {name: getattr(p.transfer, name) for name in ("ixfr", "notify", "updates")}
    resolves, at, folder = p.role in ("resolver", "frontend"), p.database, f"{p.seen_directory}/{INCLUDE_FOLDER}"
    zones = p.zones if resolves else p.configured_zones
    return {
        "role": p.role,
        "address": str(p.address),
        "addresses": [str(address) for address in p.addresses],
        "port": DNS_PORT,
        "tls_port": keys.XOT_PORT,
        "threads": p.threads,
        "folder": p.seen_directory,
        "state": p.seen_state,
        "version": list(numbers(p.source.version)),
        "sockets": p.holds_sockets,
        "zones": [
            {"name": zone.name, "file": p.seen_zone_file(zone), "route": number % max(1, len(p.routes))}
            for number, zone in enumerate(zones)
        ],
        "signed": p.signed,
        "suffix": p.suffix,
        "primaries": list(dict.fromkeys(str(route.primary) for route in p.routes)),
        "routes": [
            {
                "number": route.number,
                "address": str(route.primary),
                "port": _port_asked(p, resolves),
                "source": str(route.source or ""),
            }
            for route in p.routes
        ],
        "secondaries": [str(address) for address in p.secondaries],
        "catalog": p.catalog.name if p.catalog else "",
        "transfer": transfer,
        "tsig": {"name": keys.TSIG_NAME, "algorithm": keys.TSIG_ALGORITHM, "secret": p.keys.tsig_secret},
        "over_tls": p.answers_over_tls,
        "over_https": p.over_https,
        "https_port": keys.HTTPS_PORT,
        "over_quic": p.answers_over_quic,
        "proxied": p.host.proxy_protocol,
        "backend_proxied": p.backend_proxied,
        "proxy_port": PROXY_PORTS["udp"],
        "proxy_tls_port": PROXY_PORTS["dot"],
        "certificate": p.certificate,
        "private_key": p.private_key,
        "tls_name": keys.TLS_NAME,
        "public_key_pin": p.keys.public_key_pin,
        "database": {"address": str(at.address), "port": at.port, "tls": at.tls} if at else None,
        "hints": p.seen_hints if p.from_hints else "",
        "anchor": f"{p.seen_directory}/{ANCHOR_FILE}" if p.anchor else "",
        "resolving": p.resolving.model_dump(),
        "include": f"{folder}/{include_name}" if p.host.include else "",
        "include_folder": folder,
        "settings": dict(p.settings),
    }


def check(text: str, where: str, known: Variables) -> None:
    """Refuse a template that cannot be rendered.

    ``where``: its name, for the error; ``known``: the variables that have a value before anything starts.
    """
    check_names(text, where, known)
    rendered(text, where, {**EXAMPLE, **known})


def check_names(text: str, where: str, known: Mapping[str, object]) -> None:
    """Refuse what is no template, or uses other variables than `EXAMPLE` and ``known``. Nothing is rendered."""
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{where} has {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    try:
        used = sandbox.names(text)
    except TemplateError as error:
        raise UsageError(
            f"{_place(where, error.line)}: {error.reason}",
            hint="it is a Jinja template: write {{ '{{' }} for two braces that belong to the configuration",
        ) from error
    allowed = {**EXAMPLE, **known}
    if unknown := sorted(used.keys() - allowed.keys(), key=lambda name: used[name]):
        close = difflib.get_close_matches(unknown[0], allowed, 1)
        raise UsageError(
            f"{_place(where, used[unknown[0]])} uses {unknown[0]}, which is no variable of a template",
            hint=f"did you mean {close[0]}?" if close else f"variables are {', '.join(allowed)}",
        )


def rendered(text: str, where: str, values: Variables) -> str:
    """The configuration. Raises UsageError if the template does not fit the values."""
    try:
        return sandbox.render(text, values)
    except TemplateError as error:
        raise UsageError(
            f"{_place(where, error.line)} cannot be rendered: {error.reason:.200}",
            hint="docs/reference/configuration.md lists the variables and their parts",
        ) from error


def configuration(own: str, values: Variables, given: OwnFile | None) -> str:
    """A configuration from dnsrig's template ``own``, or from the user's if there is one."""
    return _compiled(own).render(values) if given is None else rendered(given.text, given.name, values)


def without_addresses(given: OwnFile | None) -> bool:
    """Whether a configuration of the user does not use the addresses of its host."""
    return given is not None and not {"address", "addresses"} & sandbox.names(given.text).keys()


@cache
def _compiled(text: str) -> jinja2.Template:
    return sandbox.environment().from_string(text)


def _place(where: str, line: int) -> str:
    return f"{where} line {line}" if line else where


def uses(text: str) -> set[str]:
    """The variables that a template reads.

    Of a table, ``resolving.cache_mb`` is a part that the template names; ``resolving`` means that it may read any part.

    >>> sorted(uses("{{ address }}{% for zone in zones %}{{ zone.name }}{% endfor %}{{ resolving.cache_mb }}"))
    ['address', 'resolving.cache_mb', 'zones']
    >>> sorted(uses("{% for name in settings %}{{ resolving.get('cache_mb') }}{% endfor %}"))
    ['resolving.cache_mb', 'settings']
    """
    parts = _Parts()
    parts.visit(sandbox.environment().parse(text))
    known = sandbox.names(text)
    return {part for part in parts.found if part.partition(".")[0] in known}


class _Parts(visitor.NodeVisitor):
    """Collects the variables that a template reads, and the parts of tables that it names."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Name(self, node: nodes.Name) -> None:
        self.found.add(node.name)

    def visit_Getattr(self, node: nodes.Getattr) -> None:
        if isinstance(node.node, nodes.Name) and not hasattr(dict, node.attr):
            self.found.add(f"{node.node.name}.{node.attr}")
        else:
            self.generic_visit(node)

    def visit_Getitem(self, node: nodes.Getitem) -> None:
        if isinstance(node.node, nodes.Name) and isinstance(node.arg, nodes.Const):
            self.found.add(f"{node.node.name}.{node.arg.value}")
        else:
            self.generic_visit(node)

    def visit_Call(self, node: nodes.Call) -> None:
        """Treat ``settings.get("depth")`` as ``settings.depth``."""
        match node:
            case nodes.Call(
                node=nodes.Getattr(node=nodes.Name(name=table), attr="get"), args=[nodes.Const(value=key), *rest]
            ):
                self.found.add(f"{table}.{key}")
                for part in rest:
                    self.visit(part)
            case _:
                self.generic_visit(node)
