"""Replication: zones brought to a far site, by transfers or by a database.

At the near site a primary has all zones, and with a database has published them there; at the far site nothing has
started. The time is from the first exec at the far site to the last zone answered with the expected serial. Option
``carrier``:

- ``axfr``: a secondary transfers them from the primary. Far link: primary to secondary.
- ``replica``: a database beside the secondary replicates that beside the primary, and the secondary reads from its own.
  Far link: database to replica.
- ``remote``: the secondary reads from the database beside the primary. Far link: database to secondary.
- ``pipelined``: the instrument `transfer` (`transfer@engine`) is the secondary: it takes the zones and stores nothing.

With ``transfer.transport = "xot"`` whatever passes between the sites does so over TLS, a database's protocol too;
inside a site nothing does. A replica and its secondary start at the same moment, but a secondary that ends without its
database waits for that. `path` in an experiment is the far link only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result, transfer
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import databases
from dnsrig.rundir import Scalar, TrialSpec
from dnsrig.servers import driver_of

DESCRIPTION = "zones that reach a far site by AXFR, by a replica of a database, or read from a database far away"
MAIN_METRIC = "transfer_time_s"
OPTIONS: dict[str, Scalar] = {
    "carrier": "axfr",
    "probe_rate_per_s": 1000,
    "primary_ready_limit_s": 1800,
    "drain_s": 0.3,
}
WITHOUT_ANSWERS = True
SOCKETS = True
OTHER_HOSTS = ("database",)
"""So that an experiment over several carriers says once which database it is about."""
FAR_LINKS = {
    "axfr": ("primary", "secondary"),
    "replica": ("database", "replica"),
    "remote": ("database", "secondary"),
    "pipelined": ("primary", "secondary"),
}
"""Carrier -> the host at the near site, and the host at the far site."""
CHOICES = {"carrier": tuple(FAR_LINKS)}
DATABASE_READY_LIMIT_S = 60.0
Options = Mapping[str, Scalar]


def hosts(options: Options) -> dict[str, HostRole]:
    """The far site is under test: its secondary first, and a replica beside it."""
    carrier = _carrier(options)
    if carrier in ("axfr", "pipelined"):
        near = {"primary": HostRole(role="primary")}
        far = {"secondary": HostRole(role="secondary", under_test=True)}
    else:
        near = {"primary": HostRole(role="primary", database="database"), "database": HostRole(role="database")}
        far = {"secondary": HostRole(role="secondary", under_test=True, database="database", database_far=True)}
    if carrier == "replica":
        replica = HostRole(
            role="database", under_test=True, inherits="database", database="database", database_far=True
        )
        far = {"secondary": HostRole(role="secondary", under_test=True, database="replica"), "replica": replica}
    return {**near, **far}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    """Which link is the far one follows from the hosts, so each carrier has no link but those that it needs."""
    present = set(hosts)
    if "replica" in present:
        return [("database", "replica"), ("primary", "database"), ("replica", "secondary")]
    if "database" in present:
        return [("database", "secondary"), ("primary", "database")]
    return [("primary", "secondary")]


def far(hosts: Iterable[str], options: Options) -> list[tuple[str, str]]:
    """The link between the sites: what a path applies to."""
    return [FAR_LINKS[_carrier(options)]]


def validate(spec: TrialSpec) -> None:
    """Refuse servers that the carrier cannot have."""
    carrier = _carrier(spec.options)
    kinds = {name: driver_of(host.server) for name, host in spec.hosts.items() if host.server is not None}
    secondary = kinds["secondary"]
    if secondary.answers is (carrier == "pipelined"):
        raise UsageError(
            f"the variant {spec.variant.label}: the carrier {carrier} and {secondary.title} do not go together",
            hint='pipelined needs the instrument as secondary, and only it: hosts.secondary.server = "transfer@engine"',
        )
    if "database" not in kinds:
        return
    if spec.transfer.tsig or spec.transfer.quic or spec.transfer.provisioning == "catalog":
        raise UsageError(
            f"the variant {spec.variant.label}: a database carries zones without TSIG, without QUIC and without a catalog zone",
            hint='set transfer.transport to "tcp", or "xot" for TLS between the sites, and transfer.provisioning to "static"',
        )
    for name in ("primary", "secondary"):
        if kinds["database"].kind not in kinds[name].databases:
            raise UsageError(
                f"the variant {spec.variant.label}: {kinds[name].title} (host {name}) cannot use {kinds['database'].title}",
                hint=f"it can use: {', '.join(kinds[name].databases) or 'none'}",
            )


def checks(spec: TrialSpec) -> list[str]:
    found = ["carried", *(["database-filled"] if "database" in spec.hosts else ["transfer-port"])]
    several = spec.dataset.zones > 1 and _carrier(spec.options) == "axfr"
    return [*found, *(["connections-per-zone"] if several and _keeps_connections(spec) else [])]


def _keeps_connections(spec: TrialSpec) -> bool:
    """Whether the experiment says how many connections the secondary keeps for the next zone. With TLS it keeps
    none."""
    host = spec.hosts[spec.subject]
    known = driver_of(host.server).as_secondary if host.server else None
    return known is not None and known.connections_setting in host.settings and not spec.transfer.tls


def measure(context: TrialContext) -> Result:
    with context.phase("setup"):
        context.start_watch()
        position = _start_near_site(context)
        context.servers.prepare("secondary")
        if "replica" in context.spec.hosts:
            context.servers.prepare("replica")
        time.sleep(transfer.SETTLE_S)
        probe = transfer.start_probe(context)
    if probe is None:
        return transfer.floor(context)
    if "replica" not in context.spec.hosts:
        return context.time_zones(probe, lambda: context.servers.start("secondary"))
    follower = databases.Follower(context, "replica", position)

    def begin() -> None:
        context.servers.start("replica")
        follower.start()
        if not driver_of(context.servers.placements["secondary"].source).waits_for_database:
            databases.wait_far(context, "replica")
        context.servers.start("secondary")

    try:
        return context.time_zones(probe, begin)
    except databases.TooLate as late:
        return Result("timeout", str(late))
    finally:
        follower.stop()


def _start_near_site(context: TrialContext) -> int:
    """Start whatever is at the near site, until it has all zones; how much was then written to the database."""
    limit_s = float(context.option("primary_ready_limit_s"))
    if "database" not in context.spec.hosts:
        context.start_ready("primary", limit_s=limit_s)
        return 0
    databases.start_ready(context, "database", limit_s=DATABASE_READY_LIMIT_S)
    context.start_ready("primary", limit_s=limit_s)
    return databases.wait_filled(context, "database", limit_s=limit_s)


def _carrier(options: Options) -> str:
    return str(options["carrier"])
