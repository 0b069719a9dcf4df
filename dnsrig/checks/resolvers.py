"""Checks of resolvers, and of the simulated Internet that they ask (the world)."""

from __future__ import annotations

from typing import Any

import polars as pl

from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.runs import upstream
from dnsrig.runs.during import work_percent, work_series
from dnsrig.runs.row_files.world import NOT_IN_WORLD, QUERIES
from dnsrig.runs.trial import Trial
from dnsrig.text import visible


@check(title="packets to the authority for each answer")
def cache(trial: Trial) -> Seen:
    """Number of packets that a resolver sent to the authority for each of its answers: none if names are in its cache,
    at least one if they are not.

    The share ``options.missing_share`` of the names was never asked for before. With a warm cache, one packet for
    twenty answers is allowed: a record expires, or the resolver requests keys. With a cold cache, there must be at
    least nine packets for ten answers that cannot be in the cache.
    """
    spec, answered = trial.record.spec, trial.load.answered
    missing = float(spec.options["missing_share"])
    sent = trial.links_growth(spec.primaries, "tx_packets")
    if not answered or sent is None:
        return cannot_tell("there are no answers, or no samples of the link to the authority")
    series = tuple(f"{trial.subject}/{spec.interface(trial.subject, primary)}/tx_packets" for primary in spec.primaries)
    if missing:
        return Seen(sent / answered, least=0.9 * missing, asked="uncached", series=series)
    return Seen(sent / answered, most=0.05, asked="cached", series=series)


NOERROR, SERVFAIL = 0, 2


@check(title="DNSSEC level")
def resolver_level(trial: Trial) -> Seen:
    """The resolver's DNSSEC level: as its twin showed before the measurement, and as the server itself showed after it.

    A resolver requests signatures if its queries to authorities have DO. It validates if the answer for a good name has
    AD and a broken name gets SERVFAIL; AD alone proves nothing. It does not validate if it answers both without AD. The
    level must be the configured one, and the same on both; otherwise the trial measures something else. If the zones
    belong to primaries, there is no broken name, and no resolver validates.
    """
    summary = trial.record.instruments.get("level", {})
    twin = summary.get("twin")
    asked = trial.record.spec.hosts[trial.subject].resolving
    if asked is None or not twin:
        return cannot_tell("the resolver's twin was not tested")
    if "queries" not in twin:
        return cannot_tell("the kernel has no packet sockets, so the twin's queries are not known")
    on_twin, on_server = shown_level(twin, twin), shown_level(summary.get("server", {}), twin)
    seen = on_twin if on_twin == on_server else f"{on_twin} on the twin, {on_server} on the server itself"
    why = f"its twin sent {twin['queries']} queries, {twin['edns']} with EDNS and {twin['do']} with DO"
    return Seen(seen, asked=asked.level, why=why)


def shown_level(answers: dict[str, Any], sent: dict[str, Any]) -> str:
    """The level that a resolver's ``answers``, and the queries that it ``sent``, show; a few words if they show
    none."""
    good, broken = answers.get("good"), answers.get("broken")
    if not good or (broken is not None and not broken):
        return "no answer"
    if not _has_data(good):
        return "no data for the good name"
    refuses = broken is not None and broken["rcode"] == SERVFAIL
    if good["ad"]:
        return "validating" if refuses else "AD for the good name, and no SERVFAIL for a broken one"
    if refuses:
        return "SERVFAIL for the broken name, and no AD for the good one"
    if broken is not None and not _has_data(broken):
        return "no data for the broken name, and no SERVFAIL"
    if not sent["queries"]:
        return "no upstream queries"
    return "do-unvalidated" if sent["do"] else "no-do"


def _has_data(answer: dict[str, Any]) -> bool:
    return bool(answer["rcode"] == NOERROR and answer["records"] > 0)


@check(title="queries to authorities with DO", unit="%")
def upstream_do(trial: Trial) -> Seen:
    """Share of the resolver's queries to authorities that requested signatures (DO, RFC 3225), as counted by the world.

    At the level without DO no query has it. At the other levels all queries have it, except that a query without EDNS
    may follow one that got no answer in time; so 10 % may lack it.
    """
    asked = trial.record.spec.hosts[trial.subject].resolving
    seen = upstream.percent(upstream.queries(trial), pl.col("dnssec_ok"))
    if asked is None or seen is None:
        return cannot_tell("the world counted no queries")
    if asked.level == "no-do":
        return Seen(seen, most=0.0, asked=asked.level, series=(QUERIES.name,))
    return Seen(seen, least=90.0, asked=asked.level, series=(QUERIES.name,))


@check(title="queries to servers of faulty zones")
def faults_met(trial: Trial) -> Seen:
    """Number of queries that reached the servers of faulty zones, to which the flood's queries should lead.

    A resolver that has learned that a server is dead need not ask it again, so there is no minimum share. But if no
    query arrived, nothing met the fault. For a baseline zone without a real fault (`slow` by 0 ms) the queries are
    counted as well.
    """
    if trial.rows(QUERIES).is_empty():
        return cannot_tell("the world counted no queries")
    met = upstream.queries(trial).filter(pl.col("fault") != "none")
    return Seen(int(met["queries"].sum()), least=1, series=(QUERIES.name,))


@check(title="queries for names that the world does not have")
def names_in_world(trial: Trial) -> Seen:
    """Number of queries for names that the world does not have, not counting names that clients invent so that they do
    not exist.

    There must be none. The answer for a name that the world lacks is NXDOMAIN, which differs from the answer on the
    Internet. With a capture, or with names that are asked for once in zones without a wildcard, cache hits, answers and
    upstream queries would belong to different traffic.
    """
    summary = trial.record.instruments.get("world", {})
    if "not_in_world" not in summary:
        return cannot_tell("the world wrote no summary")
    names = trial.rows(NOT_IN_WORLD).sort("queries", descending=True)["name"].head(3).to_list()
    why = f"e.g. {', '.join(map(visible, names))}"
    return Seen(summary["not_in_world"], most=0, why=why, series=(NOT_IN_WORLD.name,))


LOST = {
    "receive_buffer_drops": "queries found a full buffer",
    "unsent": "answers could not be sent",
    "seconds_dropped": "seconds of counts found no room",
}


@check(title="time in which the world was busy", unit="%")
def world_kept_up(trial: Trial) -> Seen:
    """Whether the simulated Internet lost nothing, and how much of the time it was busy during the measurement.

    If the world does not answer in time, the resolver repeats its query or answers SERVFAIL: then the world limits the
    result. The world is busy while it uses a CPU, and while it waits for one that others use (PSI), as may happen on
    two CPUs. If it is busy for 70 % of the time, a query waits for slightly more than two others (in an M/M/1 queue,
    the mean is share / (1 - share)), or about 0.1 ms, which is little compared with a network; above that the wait
    grows fast.
    """
    summary, name, phase = trial.record.instruments.get("world", {}), trial.record.spec.world, trial.measure
    if not summary or name is None or phase is None:
        return cannot_tell("the world wrote no summary")
    lost = [f"{summary[key]:,} {what}" for key, what in LOST.items() if summary.get(key)]
    if lost:
        return Seen(", ".join(lost), asked="nothing lost")
    share = work_percent(trial, name, [(phase.start.monotonic_ns, phase.end.monotonic_ns)])
    if share is None:
        return cannot_tell("there are no samples of its CPU time")
    return Seen(share, most=70.0, series=work_series(name))


@check(title="signatures that the world made on request", unit="%")
def world_signed_ahead(trial: Trial) -> Seen:
    """Whether a simulated Internet had its signatures before the resolver requested them.

    A signature that is made on request takes about a millisecond with RSA (2,048 bits), about 13 µs with P-256, and a
    resolver's client waits for it: then a part of the latency is the world's. If this concerns 1 % of the signatures, a
    signature is at most 0.01 ms later on average. A resolver uses 0.2 to 0.5 ms of CPU for a client's query
    (docs/results/resolvers.md), so that is little. With a larger share, the world begins to matter if authorities have
    no distance.

    The world makes signatures on request if the stream's questions do not lead to them, or if there was no room for
    them. In the first case sign fewer zones, in the second give the world more memory.
    """
    signatures = trial.record.instruments.get("world", {}).get("signatures")
    if signatures is None:
        return cannot_tell("the world wrote no summary")
    given, made, forgotten = (signatures.get(name, 0) for name in ("given", "made", "forgotten"))
    host = trial.record.spec.world
    remedy = (
        f"{forgotten:,} found no room, so raise hosts.{host}.settings.signature-cache-mib"
        if forgotten
        else "the resolver requests more than the stream's questions lead to, so sign fewer zones: signing.share in dataset.set"
    )
    return Seen(100 * made / given if given else 0.0, most=1.0, why=f"{made:,} of {given:,}; {remedy}")
