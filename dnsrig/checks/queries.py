"""Checks of queries: whether they were sent, arrived, and were answered, and over which connections."""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.metrics.replay import arrival
from dnsrig.runs import flood
from dnsrig.runs.during import work_percent, work_series
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.transfers import FEWEST, handshakes_of
from dnsrig.runs.trial import Trial

LEAST_SENT_PERCENT = 99.0
"""Least share of the queries to send, and least share of them to arrive."""

MEANINGS = {
    "REFUSED": ": does the access list of the server let this machine ask, and does it have these names?",
    "NOTIMP": ": the server does not implement this kind of query",
    "SERVFAIL": ": the server could not find the answers; its log has the cause",
}
"""What most answers mean if they have an error."""


@check(title="queries sent", unit="% of queries due")
def rate(trial: Trial) -> Seen:
    """Share of the due queries that were sent. The variant's name contains the rate, or a share of the capacity. Of a
    stream nearly all queries must be sent, or the server does not get the clients' traffic."""
    load = trial.load
    if not load.due:
        return cannot_tell("there is no summary of the load or replay")
    why = f"{load.due - load.sent:,} were not sent"
    return Seen(100 * load.sent / load.due, least=LEAST_SENT_PERCENT, asked=load.asked_qps, why=why)


@check(title="packets that the server under test received from clients", unit="% of the queries sent")
def queries_arrived(trial: Trial) -> Seen:
    """Share of the clients' queries that reached the host of the server under test, from the number of packets that it
    received.

    Its interface counts them, so the check does not depend on the instrument's own report. A query over TCP or TLS
    takes one or more packets, unless a client sends several queries at once; so there is only a lower limit. If a full
    socket queue drops queries later, this is the server's result.
    """
    spec = trial.record.spec
    clients = [name for name, host in spec.hosts.items() if host.client_range]
    came = trial.links_growth(clients, "rx_packets")
    if came is None or not trial.load.sent:
        return cannot_tell("there are no samples of the link (samples.arrow), or no query was sent")
    interfaces = dict.fromkeys(spec.interface(trial.subject, name) for name in clients)
    series = tuple(f"{trial.subject}/{interface}/rx_packets" for interface in interfaces)
    return Seen(100 * came / trial.load.sent, least=LEAST_SENT_PERCENT, series=series)


@check(title="queries that arrived unchanged", unit="% of the stream's queries")
def stream_arrived(trial: Trial) -> Seen:
    """Share of a replayed stream's queries that reached the server unchanged: from their client's address, and
    identical except for the message id. A capture shows this, except for encrypted queries."""
    found = arrival(trial)
    if found is None or not found.visible:
        return cannot_tell("arriving queries were not captured, or are encrypted")
    if found.dropped != 0:
        return cannot_tell("tcpdump missed packets, or did not report how many")
    why = f"{found.missing:,} did not arrive, {found.unknown:,} unknown ones did"
    return Seen(100 * (1 - found.missing / found.visible), least=LEAST_SENT_PERCENT, why=why)


@check(title="answers as expected", unit="% of the answers")
def answers_good(trial: Trial) -> Seen:
    """Share of the load's answers that were as expected: by ``queries.expect`` if the experiment has it, or else
    NOERROR, or NXDOMAIN for a name that does not exist.

    A server that refuses is fast. 1 % may fail; with more, the latency would be the latency of something else.
    """
    rcodes, load = trial.load.rcodes, trial.load
    queries = trial.record.spec.queries
    is_expected = queries is not None and queries.parameters.get("expect")
    good = rcodes.get("NOERROR", 0) + rcodes.get("NXDOMAIN", 0)
    answered = sum(rcodes.values())
    if is_expected and (listed := load.answered - load.unlisted + sum(load.wrong.values())):
        # Of the answers with another RCODE, at most all listed ones were judged by the file.
        failed = max(0, answered - good - listed)
        seen = min((load.answered - load.unlisted) / listed, 1 - failed / max(1, load.unlisted))
        return Seen(100 * seen, least=99.0, why=_of_expected(load))
    if not answered:
        return cannot_tell("the load counted no answers")
    why = ", ".join(f"{count:,} {name}" for name, count in rcodes.items())
    most = max(rcodes, key=lambda name: rcodes[name])
    return Seen(100 * good / answered, least=99.0, why=f"{why}{MEANINGS.get(most, '')}")


def _of_expected(load: LoadResult) -> str:
    without = f"nothing was expected of {load.unlisted:,} answers" if load.unlisted else ""
    return "; ".join(filter(None, (load.wrong_in_words, without)))


@check(title="answers that deny the name", unit="% of the answers")
def names_missing(trial: Trial) -> Seen:
    """Share of the answers that deny the name: ``options.missing_share`` of the queries ask for such names.

    A difference of 2 % of the answers is allowed: names are random, and names of queries without an answer do not
    count.
    """
    rcodes = trial.load.rcodes
    if not (answered := sum(rcodes.values())):
        return cannot_tell("the load counted no answers")
    asked = 100 * float(trial.record.spec.options["missing_share"])
    seen = 100 * rcodes.get("NXDOMAIN", 0) / answered
    return Seen(seen, least=max(0.0, asked - 2.0), most=min(100.0, asked + 2.0), asked=asked)


@check(title="connections accepted by the server under test")
def query_transport(trial: Trial) -> Seen:
    """Number of connections that the server under test accepted during the load: none over UDP and QUIC, at least one
    for each client over TCP and TLS (DoT, DoH). Over QUIC at least one datagram of each client must arrive, too.

    The kernel of its host counts them (`PassiveOpens` of RFC 1213), so the check does not depend on the load's own
    report. For a secondary or a primary that also transfers zones, only the lower limit applies. Connections with which
    dnsrig reads a resolver's counters do not count.
    """
    opened = trial.growth(trial.subject, "tcp", "passive_opens")
    if opened is None:
        return cannot_tell("there are no samples of TCP (samples.arrow)")
    opened = max(0.0, opened - trial.record.instruments.get("statistics", {}).get("connections", 0))
    options = trial.record.spec.options
    series = (f"{trial.subject}/tcp/passive_opens",)
    if options["transport"] == "doq":
        received = trial.udp_growth(trial.subject, "in_datagrams")
        if received is None:
            return cannot_tell("there are no samples of UDP (samples.arrow)")
        if received < int(options["clients"]):
            return Seen(int(received), least=int(options["clients"]), asked="doq", why="datagrams that arrived")
    if options["transport"] in ("udp", "doq"):
        alone = options["transfers"] == "none" and options["changes"] == "none"
        return Seen(
            int(opened),
            most=0 if alone else None,
            least=None if alone else 0,
            asked=str(options["transport"]),
            series=series,
        )
    return Seen(int(opened), least=int(options["clients"]), asked=str(options["transport"]), series=series)


@check(title="TLS sessions resumed", unit="% of handshakes that could resume")
def sessions_resumed(trial: Trial) -> Seen:
    """Share of the TLS handshakes that could have resumed a session (RFC 8446, 2.2) and did: at least half if sessions
    should be resumed, no session otherwise.

    A handshake could resume if the same secondary, or the same client of a replay, already had an established
    connection. The clients of a load share their sessions, so all but their first handshakes could resume. If a server
    issues no tickets, the resumed case is the same as the new one, and the experiment would compare a thing with
    itself.
    """
    options = trial.record.spec.options
    if classes := trial.load.classes:
        found = [each.connections for each in classes if each.resumption]
        could, resumed = sum(each.returning for each in found), sum(each.resumed for each in found)
        wanted = True
    elif trial.load.ran:
        made = trial.load.connections
        could, resumed = max(0, made.handshakes - int(options.get("clients", 0))), made.resumed
        wanted = bool(options["resumption"])
    else:
        if trial.connections.is_empty():
            return cannot_tell("connections.arrow has no rows")
        handshakes = handshakes_of(trial.connections)
        could, resumed = handshakes.could_resume, handshakes.could_resume - handshakes.could_resume_full
        wanted = bool(options["resumption"])
    if could < FEWEST:
        return cannot_tell(f"{could} handshakes could have resumed a session, too few to judge by")
    if wanted:
        return Seen(100 * resumed / could, least=50.0, asked="resumed")
    return Seen(100 * resumed / could, most=0.0, asked="new")


@check(title="queries that the server accepted as early data", unit="% of resumed sessions")
def early_data(trial: Trial) -> Seen:
    """Share of the resumed TLS sessions with early data (0-RTT, RFC 8446 2.3) in which the server accepted it: at least
    half.

    If a server's tickets do not permit early data, clients send none. If the server rejects it, clients send the
    queries again. In both cases they are as slow as clients without early data.
    """
    load = trial.load
    found = [each.connections for each in load.classes if each.early_data] if load.classes else [load.connections]
    resumed = sum(each.resumed for each in found)
    if resumed < FEWEST:
        return cannot_tell(f"{resumed} sessions of clients with early data were resumed, which is too few")
    rejected = sum(each.early_rejected for each in found)
    why = f"{rejected} were rejected" if rejected else "its tickets do not permit early data"
    accepted = sum(each.early_accepted for each in found)
    return Seen(100 * accepted / resumed, least=50.0, asked="taken", why=why)


@check(title="queries of the flood sent", unit="% of queries due")
def flood_sent(trial: Trial) -> Seen:
    """Share of the flood's queries that were sent: they are the load that should overload the server.

    With 10 % less it is still a flood, and its sender shares a CPU with others. If its names do not exist, the answers
    show that. In a simulated Internet 10 % of the zones have a wildcard, so some answers are NOERROR, but not more than
    half.
    """
    load = flood.of(trial)
    if not load.due:
        return cannot_tell("there is no summary of the flood")
    existing = load.rcodes.get("NOERROR", 0)
    is_missing = trial.record.spec.options.get("flood_names", "missing") == "missing"
    if is_missing and existing > 0.5 * load.answered:
        return Seen(0.0, least=90.0, why=f"{existing:,} answers were NOERROR, so their names exist")
    return Seen(100 * load.sent / load.due, least=90.0, asked=load.asked_qps)


@check(title="time in which the server was busy at rates that failed", unit="%")
def capacity_is_the_servers(trial: Trial) -> Seen:
    """CPU use of the server under test at rates that failed, in the search for its capacity.

    If the server did not use its CPUs and did not wait for them either (PSI), something else lost the queries: a
    simulated Internet that did not answer, or a path. Then the measured capacity is not the server's. At its limit a
    server uses all its CPUs. The check does not count the start and the last timeouts, but queries that wait for
    others, so 80 % is enough.
    """
    failed = [
        (step["start_ns"], step["end_ns"])
        for step in trial.record.instruments.get("ramp", {}).get("steps", [])
        if not step["holds"] and not step["instrument_failed"]
    ]
    if not failed:
        return cannot_tell("no rate failed")
    share = work_percent(trial, trial.subject, sorted(failed))
    if share is None:
        return cannot_tell("there are no samples of its CPU time")
    return Seen(share, least=80.0, series=work_series(trial.subject))


@check(title="questions with an answer", unit="%")
def questions_answered(trial: Trial) -> Seen:
    """Share of the questions to the primary whose answer allowed a conclusion."""
    features = trial.record.instruments.get("interrogate", {}).get("features") or []
    if not features:
        return cannot_tell("no question was asked")
    known = sum(feature["verdict"] != "cannot-tell" for feature in features)
    return Seen(100 * known / len(features), least=50.0)
