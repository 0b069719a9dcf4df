"""Checks of zone transfers, and of other ways in which zones reach a site."""

from __future__ import annotations

import polars as pl

from dnsrig import datasets
from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.prediction import secondaries
from dnsrig.rundir import TrialSpec
from dnsrig.runs import replication, transfers
from dnsrig.runs.trial import Trial


def _zones_arrived(trial: Trial) -> int | None:
    """The number of zones that `probe` saw, or that `transfer` completed. None: neither ran."""
    summaries = trial.record.instruments
    seen: int | None = summaries.get("probe", {}).get("seen", summaries.get("transfer", {}).get("done"))
    return seen


def _records(trial: Trial, zones: int) -> float:
    """The number of records in that number of zones; at least one."""
    dataset = trial.record.spec.dataset
    return max(1.0, dataset.records * zones / max(1, dataset.zones))


@check(title="transfers answered as requested", unit="% of completed transfers")
def answered_by(trial: Trial) -> Seen:
    """Share of completed transfers that were answered as requested: with IXFR (RFC 1995) or AXFR.

    A primary may answer IXFR with the whole zone; at least 90 % must be answered as requested.
    """
    done = transfers.of(trial).filter(pl.col("outcome") == "done")
    if done.is_empty():
        return cannot_tell("no transfer was completed, or transfers.arrow has no rows")
    asked = "ixfr" if trial.record.spec.transfer.ixfr else "axfr"
    seen = 100 * done.filter(pl.col("answered") == asked).height / done.height
    return Seen(seen, least=90.0, asked=asked.upper(), series=("transfers.arrow/answered",))


@check(title="AXFRs answered by AXFR", unit="% of completed AXFRs")
def axfr_answered(trial: Trial) -> Seen:
    """Share of AXFR requests that were answered by AXFR, in an experiment that also requests IXFR. Otherwise it would
    compare AXFR with itself.

    Whether IXFR is answered by IXFR is the question of such an experiment, and its result.
    """
    summary = trial.record.instruments.get("axfr", {})
    if not summary.get("done"):
        return cannot_tell("no AXFR was completed")
    return Seen(100 * summary.get("axfr", 0) / summary["done"], least=100.0, asked="AXFR")


LEAST_ZONE_BYTES = 10_000
"""Least bytes of the transfer of a whole zone: the connection of any transfer takes up to half of it, with TLS."""


@check(title="bytes of the change", unit="% of the bytes of the whole zones")
def ixfr_size(trial: Trial) -> Seen:
    """Bytes on the link for the change, compared with the bytes of the first transfer of the whole zones: few with IXFR
    (RFC 1995), as many with AXFR.

    50 % separates the two, because only one record in thousands changes here. A primary may answer IXFR with the whole
    zone; then the trial is not what its variant's name says. The check cannot judge zones with fewer than 10 kB on the
    link: the difference of a tiny zone is as large as the zone, and the connection is larger than both. The next
    version of a user's own zones may change any number of records, so bytes on the wrong side of 50 % prove nothing.
    """
    spec, phase = trial.record.spec, trial.measure
    assert phase is not None
    if trial.record.instruments.get("probe", {}).get("seen") == 0:
        return cannot_tell("no zone arrived")
    interface = spec.interface(trial.subject, spec.primaries[0])
    rows = trial.series(trial.subject, interface, "rx_bytes").filter(pl.col("time_ns") <= phase.start.monotonic_ns)
    changed = trial.growth(trial.subject, interface, "rx_bytes")
    whole = 0 if rows.height < 2 else int(rows["value"][-1]) - int(rows["value"][0])
    if changed is None or whole <= 0:
        return cannot_tell("there are no samples of the link from before the change")
    if (each := whole / max(1, spec.dataset.zones)) < LEAST_ZONE_BYTES:
        return cannot_tell(f"a whole zone took {each:,.0f} bytes, of which the connection is a large part")
    series = (f"{trial.subject}/{interface}/rx_bytes",)
    share = 100 * changed / whole
    if spec.transfer.ixfr:
        seen = Seen(share, most=50.0, asked="IXFR", series=series)
    else:
        seen = Seen(share, least=50.0, asked="AXFR", series=series)
    if not seen.holds and datasets.are_own(spec.dataset.kind):
        return cannot_tell(f"it took {share:.0f} % of the bytes, and how many records of own zones change is not known")
    return seen


@check(title="bytes from the primaries", unit="for each record that arrived")
def zones_came(trial: Trial) -> Seen:
    """Bytes from the primaries during the measurement, for each record of the zones that arrived.

    A record takes at least sixteen bytes in a transfer with name compression, and much more if every zone is a separate
    transfer. With fewer than eight bytes, the data did not come over these links in this time: the secondary had it
    before.
    """
    spec, zones = trial.record.spec, _zones_arrived(trial)
    came = trial.links_growth(spec.primaries, "rx_bytes")
    if zones is None or came is None:
        return cannot_tell(
            "there are no samples of the links to the primaries, or the arrival of zones was not observed"
        )
    if not zones:
        return cannot_tell("no zone arrived")
    series = tuple(f"{trial.subject}/{spec.interface(trial.subject, primary)}/rx_bytes" for primary in spec.primaries)
    return Seen(came / _records(trial, zones), least=8.0, series=series)


@check(title="bytes from the primary that sent least", unit="% of an even share")
def primaries_used(trial: Trial) -> Seen:
    """Bytes from the primary that sent least, as a share of an even distribution: zones are divided evenly among
    several primaries."""
    spec, primaries = trial.record.spec, trial.record.spec.primaries
    interfaces = [spec.interface(trial.subject, primary) for primary in primaries]
    if len({*interfaces}) < len(interfaces):
        return cannot_tell("one interface leads to several primaries")
    came = [trial.growth(trial.subject, interface, "rx_bytes") for interface in interfaces]
    nbytes = [each for each in came if each is not None]
    if len(nbytes) < len(came) or not sum(nbytes):
        return cannot_tell("there are no samples of the links to the primaries")
    series = tuple(f"{trial.subject}/{interface}/rx_bytes" for interface in interfaces)
    seen = 100 * min(nbytes) * len(nbytes) / sum(nbytes)
    return Seen(seen, least=50.0, asked=len(primaries), series=series)


@check(title="source addresses of requests for zones")
def source_addresses(trial: Trial) -> Seen:
    """Number of its addresses from which the server under test had connections to its primaries, from its kernel's list
    at the end of `measure`."""
    listed = trial.record.instruments.get("connections", {}).get("hosts", {}).get(trial.subject, {})
    if not listed.get("ports"):
        return cannot_tell("no connection was listed at the end")
    asked = len(trial.record.spec.hosts[trial.subject].source_addresses)
    return Seen(int(listed.get("sources", 0)), least=asked, asked=asked)


@check(title="connections to the port of the transport", unit="%")
def transfer_port(trial: Trial) -> Seen:
    """Share of the TCP connections between the server under test and its primaries to the port of the transport: 853
    for XoT (RFC 9103), otherwise 53.

    The hosts' kernels list them at the end of `measure`. A closed connection remains listed for a minute on the side
    that closed it (TIME_WAIT). If a host keeps fewer (`tcp_max_tw_buckets`), only the last ones are listed.
    """
    if trial.record.spec.transfer.quic:
        return cannot_tell("QUIC has no TCP connections")
    ports: dict[str, int] = {}
    for listed in trial.record.instruments.get("connections", {}).get("hosts", {}).values():
        for port, count in listed.get("ports", {}).items():
            ports[port] = ports.get(port, 0) + count
    if not (found := sum(ports.values())):
        return cannot_tell("no connection was listed at the end")
    transfer = trial.record.spec.transfer
    share = 100 * ports.get("853" if transfer.tls else "53", 0) / found
    why = ", ".join(f"{count:,} to {name}" for name, count in ports.items())
    return Seen(share, least=100.0, asked=transfer.transport, why=why)


@check(title="connections with TLS", unit="% of established connections")
def connections_tls(trial: Trial) -> Seen:
    """Share of the established connections of the instrument `transfer` that had a TLS handshake: all with XoT (RFC
    9103) or XoQ (RFC 9250), no connection otherwise."""
    made = trial.connections.filter(pl.col("established_ns") > 0)
    if made.is_empty():
        return cannot_tell("no connection was established, or connections.arrow has no rows")
    seen = 100 * made.filter(pl.col("handshake") != "none").height / made.height
    asked = trial.record.spec.transfer.transport
    series = ("connections.arrow/handshake",)
    if trial.record.spec.transfer.tls:
        return Seen(seen, least=100.0, asked=asked, series=series)
    return Seen(seen, most=0.0, asked=asked, series=series)


FEWEST = 10
"""Least number of zones or transfers: with fewer, single ones would matter."""


@check(title="connections for each zone that arrived")
def connections_per_zone(trial: Trial) -> Seen:
    """Number of connections for each zone that arrived: about one with the policy ``one``, few with ``reused`` and
    ``pipelined``.

    The instrument `transfer` counts them; for a real secondary, the kernel of its host does. With ``one``, a zone that
    is tried again needs another connection. Reused connections that the other side closes all the time are not reused.
    """
    spec, summary = trial.record.spec, trial.transfer
    if "policy" in spec.options or "transfers" in spec.options:
        done, policy = summary.get("done", 0), str(spec.options.get("policy", spec.options.get("transfers")))
        opened = summary.get("connections", {}).get("established")
    else:
        done, policy = trial.record.instruments.get("probe", {}).get("seen", 0), _policy(spec)
        opened = None if spec.transfer.quic else trial.growth(trial.subject, "tcp", "active_opens")
    if opened is None and spec.transfer.quic:
        return cannot_tell("the kernel does not count connections over QUIC")
    if opened is None or done < FEWEST:
        return cannot_tell(f"{done} zones arrived, which is too few")
    if policy == "one":
        return Seen(opened / done, least=0.9, asked=policy)
    return Seen(opened / done, most=0.5, asked=policy)


def _policy(spec: TrialSpec) -> str:
    """The policy of a secondary with its settings."""
    host = spec.hosts[spec.subject]
    known = secondaries.known().get(host.server.kind) if host.server else None
    return known.policy(host.settings, "xot" if spec.transfer.tls else "tcp") if known else "one"


@check(title="transfers outstanding at once")
def outstanding(trial: Trial) -> Seen:
    """Median number of outstanding transfers at the moments at which a transfer was requested.

    With ``pipelined`` at least two: if there is never more than one on a connection, there was no pipeline.
    """
    rows = transfers.of(trial)
    if rows.height < FEWEST:
        return cannot_tell(f"there are {rows.height} transfers, which is too few")
    seen = transfers.number(transfers.outstanding(rows).median())
    return Seen(seen, least=2.0, asked="pipelined", series=("transfers.arrow/asked_ns",))


@check(title="time with zone transfers during the load", unit="% of the samples")
def transfers_meanwhile(trial: Trial) -> Seen:
    """Share of the load's duration in which zones were transferred from the server under test.

    The check counts samples of the link, a fifth of a second apart, in which at least a kilobyte arrived. At least half
    of them must be such samples: the transfers are the load that the variant is named after, and transfers that ended
    early leave the server at rest.
    """
    interface = trial.record.spec.interface("client", trial.subject)
    rows = trial.during_measure("client", interface, "rx_bytes")
    if rows.height < 2:
        return cannot_tell("there are no samples of the link to the client")
    moved = rows.select((pl.col("value").diff().drop_nulls() >= 1_000).alias("moved"))["moved"]
    return Seen(
        100 * int(moved.sum()) / moved.len(),
        least=50.0,
        asked=str(trial.record.spec.options["transfers"]),
        series=(f"client/{interface}/rx_bytes",),
    )


@check(title="zones provisioned by the catalog", unit="% of served zones")
def provisioning(trial: Trial) -> Seen:
    """Share of the served zones that the configuration of the server under test does not contain: all with a catalog
    zone (RFC 9432), no zone with static provisioning.

    A member zone that is served but not configured can only come from the catalog zone, so the catalog zone was
    transferred. Configured zones are counted in the server's configuration, or in its database, after the measurement.
    """
    summaries = trial.record.instruments
    served = summaries.get("probe", summaries.get(f"probe-{trial.subject}", {})).get("seen")
    configured = summaries.get("configured", {}).get("zones")
    if configured is None or not served:
        return cannot_tell("it served no zone, or the zones in its configuration are not known")
    asked = trial.record.spec.transfer.provisioning
    share, why = 100 * max(0, served - configured) / served, f"its configuration contains {configured:,} zones"
    if asked == "catalog":
        return Seen(share, least=100.0, asked=asked, why=why)
    return Seen(share, most=0.0, asked=asked, why=why)


@check(title="bytes between the sites", unit="for each record that arrived")
def carried(trial: Trial) -> Seen:
    """Bytes on the link between the sites, for each record of the zones that arrived: whatever carries the zones must
    use this link.

    A database may compress, and stores an address in few bytes. No carrier was observed to need fewer than four bytes
    for a record.
    """
    rows, zones = replication.arrived(trial), _zones_arrived(trial)
    if rows.is_empty() or not zones:
        return cannot_tell("there are no samples of the link, or no zone arrived")
    seen = int(rows["bytes"][-1]) / _records(trial, zones)
    return Seen(seen, least=4.0, asked=str(trial.record.spec.options["carrier"]))


@check(title="zones in the database", unit="%")
def database_filled(trial: Trial) -> Seen:
    """Share of the zones that were in the database before the far site started. Zones that are not in it cannot be read
    from it."""
    zones = trial.record.instruments.get("database", {}).get("zones")
    if zones is None:
        return cannot_tell("the database was not examined")
    server = trial.record.spec.hosts["database"].server
    return Seen(100 * zones / trial.record.spec.dataset.zones, least=100.0, asked=server.name if server else None)
