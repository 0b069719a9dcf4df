"""The configurations that dnsrig writes for servers, as they were: each server in each role, with each kind of
transfer.

A digest for each case is in ``golden/configurations.json``. If a change is meant, ``DNSRIG_BLESS=1`` makes it anew.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

import pytest
from placement_data import placed

from dnsrig.rundir import Resolving, ServerSource, TransferSpec
from dnsrig.servers import driver
from dnsrig.servers.keys import TransferKeys
from dnsrig.servers.placement import Endpoint, Placement, Route, Zone
from dnsrig.servers.resolving import ANCHOR_FILE

GOLDEN = Path(__file__).with_name("golden") / "configurations.json"
KEYS = TransferKeys("c2VjcmV0", b"certificate", b"key", "cGlu")
FILES = {
    "bind": "named.conf",
    "knot": "knot.conf",
    "nsd": "nsd.conf",
    "powerdns": "pdns.conf",
    "unbound": "unbound.conf",
    "knot-resolver": "kresd.conf",
    "powerdns-recursor": "recursor.yml",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "bind": {"transfers-in": 20, "min-update-interval": 1, "minimal-responses": True},
    "knot": {"server.tcp-workers": 4, "database.timer-db-max-size": "10M", "template.semantic-checks": True},
    "nsd": {"tcp-count": 7, "pattern.size-limit-xfr": 1, "minimal-responses": True},
    "powerdns": {"retrieval-threads": 8, "resolver": "no"},
    "unbound": {"cache-max-ttl": 7, "prefetch": True},
    "dnsdist": {"setMaxTCPClientThreads": 4, "server.sockets": 2, "cache": 10},
    "knot-resolver": {"cache.max_ttl": 3600, "option.NO_0X20": True},
    "powerdns-recursor": {"outgoing.network_timeout": 1000, "recursor.threads": 3},
}
FORMER = {"bind": "9.16.50", "knot": "3.1.0", "powerdns": "4.4.0", "unbound": "1.17.0"}
ANCHOR = ". 3600 IN DNSKEY 257 3 13 mdsswUyr3DPW132m\n. 3600 IN DS 55648 13 2 b4c8c1fe\n"
SCHEMA = """
CREATE TABLE domains (id INTEGER PRIMARY KEY, name TEXT, master TEXT, type TEXT);
CREATE TABLE domainmetadata (id INTEGER PRIMARY KEY, domain_id INTEGER, kind TEXT, content TEXT);
CREATE TABLE tsigkeys (id INTEGER PRIMARY KEY, name TEXT, algorithm TEXT, secret TEXT);
"""
ROUTES = [
    Route(1, IPv4Address("198.18.0.1"), IPv4Address("198.18.0.2")),
    Route(2, IPv4Address("198.18.0.9"), ip_address("2001:2::7")),
]
CATALOG = Zone("catalog.example", "catalog.zone")


def transfers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Kinds of transfers: a name, and the fields of a placement."""
    for transport in ("tcp", "tcp+tsig", "xot", "xot+tsig"):
        yield transport, {"transfer": TransferSpec(transport=transport)}  # type: ignore[arg-type]
    for ixfr, notify, updates in itertools.product((False, True), repeat=3):
        spec = TransferSpec(ixfr=ixfr, notify=notify, updates=updates, transport="tcp+tsig" if updates else "tcp")
        yield f"ixfr={ixfr} notify={notify} updates={updates}", {"transfer": spec}
    catalog = TransferSpec(provisioning="catalog", transport="tcp+tsig", notify=True)
    yield "catalog", {"transfer": catalog, "catalog": CATALOG}
    yield "two routes over TLS", {"over_tls": True, "routes": ROUTES}


def cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """A name, the kind of server, its role, and the fields of its placement."""
    for kind, role in itertools.product(("bind", "knot", "nsd", "powerdns"), ("primary", "secondary")):
        for name, fields in transfers():
            yield f"{kind} {role} {name}", kind, role, {**fields, **({"routes": []} if role == "primary" else {})}
        yield f"{kind} {role} settings", kind, role, {"settings": SETTINGS[kind]}
        if kind in FORMER:
            yield (
                f"{kind} {role} former",
                kind,
                role,
                {"server": ServerSource(kind=kind, source="x", version=FORMER[kind])},
            )
    for kind, role, tls in itertools.product(("knot", "powerdns"), ("primary", "secondary"), (False, True)):
        fields = {"database": Endpoint(IPv4Address("198.18.0.5"), 6379, tls), "routes": []}
        yield f"{kind} {role} database tls={tls}", kind, role, fields
    for kind in ("bind", "unbound", "knot-resolver", "powerdns-recursor"):
        yield f"{kind} resolver of primaries", kind, "resolver", {"routes": ROUTES, "over_tls": True}
        for name, changes in (
            ("plain", {}),
            ("validating", {"level": "validating"}),
            ("ipv4", {"upstream": "ipv4", "prefetch": True, "serve_stale": True}),
            ("ipv6", {"upstream": "ipv6", "qname_minimisation": False, "aggressive_nsec": False, "cache_mb": 100}),
        ):
            fields = {"from_hints": True, "routes": [], "resolving": Resolving.model_validate(changes)}
            yield f"{kind} resolver {name}", kind, "resolver", fields
        yield f"{kind} resolver settings", kind, "resolver", {"settings": SETTINGS[kind]}
    for kind in ("bind", "unbound"):
        former = {"server": ServerSource(kind=kind, source="x", version=FORMER[kind])}
        yield f"{kind} resolver former", kind, "resolver", former


CASES = {name: case for name, *case in cases()}


def place(folder: Path, kind: str, role: str, fields: dict[str, Any]) -> Placement:
    """A placement whose keys are always the same, and whose root file system has PowerDNS's schema."""
    made = placed(folder, kind, role, keys=KEYS, **fields)
    schema = folder / "root/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"
    schema.parent.mkdir(parents=True)
    schema.write_text(SCHEMA)
    (made.directory / ANCHOR_FILE).write_text(ANCHOR)
    return made


def written(folder: Path, kind: str, role: str, fields: dict[str, Any]) -> str:
    """The configuration that the driver writes. YAML is compared by its content."""
    made = place(folder, kind, role, fields)
    driver(kind).configure(made)
    text = (made.directory / FILES[kind]).read_text()
    if FILES[kind].endswith(".yml"):
        yaml = pytest.importorskip("yaml")
        return json.dumps(yaml.safe_load(text), sort_keys=True)
    return text


def test_configurations_are_as_they_were(tmp_path: Path) -> None:
    texts = {name: written(tmp_path / str(number), *case) for number, (name, case) in enumerate(CASES.items())}
    digests = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
    if "DNSRIG_BLESS" in os.environ:
        GOLDEN.write_text(json.dumps(digests, indent=1) + "\n")
    known = json.loads(GOLDEN.read_text())
    assert digests.keys() == known.keys()
    assert {name: texts[name] for name in texts if digests[name] != known[name]} == {}
