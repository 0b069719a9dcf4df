"""The hosts of each procedure, the links between them, its checks, and how long it takes beside its zones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dnsrig.procedures import HostRole, options_of, procedure, transfer_load
from dnsrig.rundir import Scalar, TransferSpec


def shown(name: str, host: HostRole) -> str:
    """``*``: it is under test; ``+N``: it has N more addresses; ``<``: it is like another host."""
    more = f"+{host.source_addresses}" if host.source_addresses else ""
    return f"{name}{'*' if host.under_test else ''}={host.role or ''}{more}{'<' if host.inherits else ''}"


@pytest.mark.parametrize(
    ("kind", "options", "hosts", "links"),
    [
        ("transfer", {}, "primary=primary secondary*=secondary", "primary-secondary"),
        (
            "transfer",
            {"primaries": 3},
            "primary=primary primary2=primary< primary3=primary< secondary*=secondary",
            "primary-secondary primary2-secondary primary3-secondary",
        ),
        ("completeness", {}, "primary=primary secondary*=secondary", "primary-secondary"),
        ("update", {}, "primary=primary secondary*=secondary", "primary-secondary"),
        ("startup", {}, "server*=primary", ""),
        ("startup", {"as": "secondary"}, "primary=primary server*=secondary", "primary-server"),
        ("zone-load", {}, "primary*=primary", ""),
        ("propagation", {"secondaries": 1}, "primary=primary secondary*=secondary", "primary-secondary"),
        (
            "propagation",
            {"secondaries": 3},
            "primary=primary secondary*=secondary secondary2=secondary< secondary3=secondary<",
            "primary-secondary primary-secondary2 primary-secondary3",
        ),
        ("transfer-load", {}, "primary*=primary client=", "client-primary"),
        ("transfer-load", {"secondaries": 3}, "primary*=primary client=+2", "client-primary"),
        ("fan-out", {"secondaries": 3}, "primary*=primary client=+3", "client-primary"),
        ("ixfr-stream", {}, "primary*=primary client=", "client-primary"),
        ("bulk", {}, "primary*=primary client=", "client-primary"),
        ("answers", {}, "primary*=primary reference=primary", "primary-reference"),
        ("replication", {}, "primary=primary secondary*=secondary", "primary-secondary"),
        ("replication", {"carrier": "pipelined"}, "primary=primary secondary*=secondary", "primary-secondary"),
        (
            "replication",
            {"carrier": "remote"},
            "primary=primary database=database secondary*=secondary",
            "database-secondary primary-database",
        ),
        (
            "replication",
            {"carrier": "replica"},
            "primary=primary database=database secondary*=secondary replica*=database<",
            "database-replica primary-database replica-secondary",
        ),
    ],
)
def test_hosts_and_links(kind: str, options: dict[str, Scalar], hosts: str, links: str) -> None:
    made = procedure(kind)
    found: dict[str, HostRole] = made.hosts(options_of(made, options))
    assert " ".join(shown(name, host) for name, host in found.items()) == hosts
    assert " ".join("-".join(ends) for ends in made.links(found)) == links


@pytest.mark.parametrize("kind", ["transfer-load", "bulk"])
def test_zones_that_clients_take_come_over_the_path(kind: str) -> None:
    made = procedure(kind)
    assert made.far(made.hosts(options_of(made, {})), {}) == [("primary", "client")]


@pytest.mark.parametrize(
    ("zones", "policy", "transport", "more"),
    [
        (1, "pipelined", "xot", []),
        (2, "pipelined", "xot", ["connections-per-zone", "outstanding"]),
        (2, "reused", "xot", ["connections-per-zone"]),
        (2, "one", "xot", ["connections-per-zone", "sessions-resumed"]),
        (2, "one", "tcp", ["connections-per-zone"]),
        (1, "one", "xot", []),
    ],
)
def test_connections_are_checked_if_there_are_several_zones(
    zones: int, policy: str, transport: str, more: list[str]
) -> None:
    transfer = TransferSpec(transport=transport)  # type: ignore[arg-type]
    spec: Any = SimpleNamespace(dataset=SimpleNamespace(zones=zones), options={"policy": policy}, transfer=transfer)
    assert transfer_load.checks(spec) == ["connections-tls", *more]


@pytest.mark.parametrize(
    ("kind", "options", "seconds"),
    [
        ("transfer-load", {"repeat": False, "duration_s": 7.0}, 0),
        ("transfer-load", {"repeat": True, "duration_s": 7.0}, 7),
        ("fan-out", {"settle_s": 2.0}, 5),
        ("bulk", {"duration_s": 7.0}, 7),
        ("answers", {}, 2),
        ("ixfr-stream", {"made_by": "reload", "duration_s": 4.0}, 8),
        ("ixfr-stream", {"made_by": "updates", "duration_s": 4.0, "records_changed": 600, "updates_per_s": 200.0}, 11),
    ],
)
def test_how_long_it_takes_whatever_the_server_does(kind: str, options: dict[str, Scalar], seconds: float) -> None:
    made = procedure(kind)
    assert made.expected_s(options_of(made, options)) == seconds
