"""Configuration templates of users: their variables, how they are rendered, and their limits.

A template is Jinja in a sandbox: it reads no file and calls nothing of dnsrig. An undefined name is an error. Before
anything starts, a template is rendered with `EXAMPLE`, so that a mistake is found then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2
from jinja2 import meta, nodes, visitor
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dnsrig.errors import UsageError
from dnsrig.rundir import Resolving
from dnsrig.servers import keys
from dnsrig.servers.placement import DNS_PORT, Placement
from dnsrig.servers.resolving import ANCHOR_FILE

MOST_CHARACTERS = 1 << 20
"""Limit for a template: the longest manual of a server is shorter."""
MOST_RENDERED_CHARACTERS = 1 << 29
"""Limit for a rendered configuration: a million zones with 500 characters each."""
Variables = Mapping[str, Any]

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
)

EXAMPLE: Variables = {
    "role": "primary",
    "address": "192.0.2.1",
    "addresses": ["192.0.2.1", "2001:db8::1"],
    "port": DNS_PORT,
    "tls_port": keys.XOT_PORT,
    "threads": 1,
    "folder": "/mnt/server",
    "state": "/mnt/state",
    "zones": [{"name": "a.example", "file": "/mnt/dataset/a"}, {"name": "b.example", "file": "/mnt/dataset/b"}],
    "suffix": "example",
    "primaries": ["192.0.2.2"],
    "secondaries": ["192.0.2.3"],
    "catalog": "",
    "transfer": {"tls": False, "tsig": False, "ixfr": False, "notify": False, "updates": False},
    "tsig": {"name": keys.TSIG_NAME, "algorithm": keys.TSIG_ALGORITHM, "secret": "AAAA"},
    "over_tls": False,
    "certificate": "/mnt/state/certificate",
    "private_key": "/mnt/state/key",
    "tls_name": keys.TLS_NAME,
    "hints": "",
    "anchor": "",
    "resolving": Resolving().model_dump(),
    "settings": {},
}
"""Every variable, with a value of the right shape."""


def variables(p: Placement) -> Variables:
    """The variables for the server of a placement. Paths are as the server sees them."""
    transfer = {"tls": p.transfer.tls, "tsig": p.transfer.tsig}
    transfer |= {name: getattr(p.transfer, name) for name in ("ixfr", "notify", "updates")}
    return {
        "role": p.role,
        "address": str(p.address),
        "addresses": [str(address) for address in p.addresses],
        "port": DNS_PORT,
        "tls_port": keys.XOT_PORT,
        "threads": p.threads,
        "folder": p.seen_directory,
        "state": p.seen_state,
        "zones": [{"name": zone.name, "file": p.seen_zone_file(zone)} for zone in p.configured_zones],
        "suffix": p.suffix,
        "primaries": list(dict.fromkeys(str(route.primary) for route in p.routes)),
        "secondaries": [str(address) for address in p.secondaries],
        "catalog": p.catalog.name if p.catalog else "",
        "transfer": transfer,
        "tsig": {"name": keys.TSIG_NAME, "algorithm": keys.TSIG_ALGORITHM, "secret": p.keys.tsig_secret},
        "over_tls": p.answers_over_tls,
        "certificate": p.certificate,
        "private_key": p.private_key,
        "tls_name": keys.TLS_NAME,
        "hints": p.seen_hints if p.from_hints else "",
        "anchor": f"{p.seen_directory}/{ANCHOR_FILE}" if p.anchor else "",
        "resolving": p.resolving.model_dump(),
        "settings": dict(p.settings),
    }


def check(text: str, where: str, known: Variables) -> None:
    """Refuse a template that cannot be rendered.

    ``where``: its name, for the error; ``known``: the variables that have a value before anything starts.
    """
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{where} has {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    tree = _parsed(text, where)
    if unknown := sorted(meta.find_undeclared_variables(tree) - EXAMPLE.keys()):
        raise UsageError(
            f"{where} uses {unknown[0]}, which is no variable of a template",
            hint=f"variables are {', '.join(EXAMPLE)}",
        )
    rendered(text, where, {**EXAMPLE, **known})


def rendered(text: str, where: str, values: Variables) -> str:
    """The configuration. Raises UsageError if the template does not fit the values."""
    _parsed(text, where)
    found: list[str] = []
    size = 0
    try:
        for piece in _ENVIRONMENT.from_string(text).generate(**values):
            size += len(piece)
            if size > MOST_RENDERED_CHARACTERS:
                raise UsageError(f"{where} makes a configuration of more than {MOST_RENDERED_CHARACTERS:,} characters")
            found.append(piece)
    except UsageError:
        raise
    except Exception as error:  # whatever an expression of the template raises
        raise UsageError(
            f"{where} cannot be rendered: {str(error) or type(error).__name__:.200}",
            hint="the reference of experiments lists the variables and their parts",
        ) from error
    return "".join(found)


def uses(text: str) -> set[str]:
    """The variables that a template reads; of a table also its parts: ``resolving.cache_mb``.

    >>> sorted(uses("{{ address }}{% for zone in zones %}{{ zone.name }}{% endfor %}{{ resolving.cache_mb }}"))
    ['address', 'resolving', 'resolving.cache_mb', 'zones']
    """
    tree = _ENVIRONMENT.parse(text)
    found = meta.find_undeclared_variables(tree)
    parts = _Parts()
    parts.visit(tree)
    return found | {part for part in parts.found if part.partition(".")[0] in found}


class _Parts(visitor.NodeVisitor):
    """Collects what a template reads of tables."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Getattr(self, node: nodes.Getattr) -> None:
        if isinstance(node.node, nodes.Name):
            self.found.add(f"{node.node.name}.{node.attr}")
        self.generic_visit(node)

    def visit_Getitem(self, node: nodes.Getitem) -> None:
        if isinstance(node.node, nodes.Name) and isinstance(node.arg, nodes.Const):
            self.found.add(f"{node.node.name}.{node.arg.value}")
        self.generic_visit(node)


def _parsed(text: str, where: str) -> nodes.Template:
    try:
        return _ENVIRONMENT.parse(text)
    except jinja2.TemplateSyntaxError as error:
        raise UsageError(
            f"{where} line {error.lineno}: {error.message}",
            hint="it is a Jinja template: write {{ '{{' }} for two braces that belong to the configuration",
        ) from error
