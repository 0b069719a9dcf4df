"""A server that answers queries: what `latency`, `capacity` and `replay` share, from the hosts to changes and transfers
meanwhile."""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from dnsrig import datasets, query_files
from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext, placing
from dnsrig.procedures.instrument import Overdue
from dnsrig.procedures.parts import generators, load_arguments, resolver_level, transfer_instrument, validity
from dnsrig.procedures.parts.generators import Led
from dnsrig.rundir import OBSERVER, HostDuties, QueriesSpec, Role, Scalar, TrialSpec
from dnsrig.runs.load_result import LoadResult
from dnsrig.servers import driver_of
from dnsrig.servers.placement import Changes

BEHIND = ("primary", "secondary", "resolver")
SERVE_AS = (*BEHIND, "frontend")
CHOICES = {
    **load_arguments.CHOICES,
    "serve_as": SERVE_AS,
    "behind": BEHIND,
    "changes": ("none", "catalog", "zones"),
    "transfers": ("none", *transfer_instrument.POLICIES),
}
OPTIONS: dict[str, Scalar] = {
    "serve_as": "primary",
    "behind": "primary",
    **load_arguments.OPTIONS,
    **generators.OPTIONS,
    "changes": "none",
    "changes_per_s": 10.0,
    "transfers": "none",
    "transfers_window": 100,
    "settle_s": 0.5,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
SEEDS = {"ramp": 11, "warmup": 12, "load": 13}
"""Seeds of the queries, by instrument. They differ, so that a resolver has no missing name of the warm-up in its
cache."""
ABSENT_MOST = 100
"""Most members that are out of the catalog at a time."""
ABSENT_S = 6.0
"""Time for which a member is out of the catalog: longer than the time between two looks of a secondary at the catalog
(BIND: 5 s), which would otherwise miss the change."""
FOLLOWED_MOST = 100
"""Most changing zones that are followed on the server under test."""
FOLLOW_RATE_PER_S = 200
FOLLOW_LIMIT_S = 15.0
"""How long the measurement waits for the first change on the server under test."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """The hosts: the server under test has the name of its role. A secondary and a resolver have a primary, which is
    not under test."""
    found = servers(options)
    load_arguments.check(options)
    if options["transfers"] != "none":
        # Not the host of the queries: the work of its kernel for transfers would delay the answers.
        found["client"] = HostRole()
    return {**found, **generators.hosts(options)}


def servers(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """The hosts with servers."""
    roles: list[Role] = ["primary", "secondary", "resolver", "frontend"]
    there = {"primary", answering(options), options["serve_as"]}
    return {role: HostRole(role=role, under_test=role == options["serve_as"]) for role in roles if role in there}


def answering(options: Mapping[str, Scalar]) -> Scalar:
    """The role of the server that answers from its own data: the server under test, or the one behind a frontend."""
    return options["behind"] if options["serve_as"] == "frontend" else options["serve_as"]


def links(hosts: Mapping[str, HostDuties]) -> list[tuple[str, str]]:
    """The primary has a link to each host except generators. These have a link to the server under test only. A
    frontend also has one to the server behind it."""
    subject = next((name for name, host in hosts.items() if host.under_test), "primary")
    found = [(subject if host.asks else "primary", name) for name, host in hosts.items() if name != "primary"]
    behind = next((name for name in ("secondary", "resolver") if name in hosts), None)
    return [*found, (behind, subject)] if behind and hosts[subject].role == "frontend" else found


def far(hosts: Mapping[str, HostDuties], options: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """The links that a ``[path]`` applies to: from the primaries to the server under test, or, if it has none, from it
    to the hosts that ask."""
    subject = next((name for name, host in hosts.items() if host.under_test), "primary")
    primaries = [name for name, host in hosts.items() if host.role == "primary" and not host.under_test]
    if primaries:
        return [(name, subject) for name in primaries]
    return [(subject, name) for name in [name for name, host in hosts.items() if host.asks] or [OBSERVER]]


def validate(spec: TrialSpec) -> None:
    """Refuse changes and transfers that the servers cannot make."""
    if spec.runs_already:
        refuse_for_running(spec, {"changes": "none"})
        if spec.options["transfers"] != "none" and not spec.dataset.zones:
            raise no_zones("options.transfers")
    check_questions(spec)
    if spec.options["transfers"] != "none" and spec.options["serve_as"] != "primary":
        raise UsageError(
            f"options.transfers: a {spec.options['serve_as']} sends no zones here",
            hint='set serve_as = "primary", or transfers = "none"',
        )
    if datasets.are_own(spec.dataset.kind):
        _check_own_zones(spec)
    changes = spec.options["changes"]
    if changes == "none":
        return
    if answering(spec.options) == "resolver":
        raise UsageError("options.changes: a resolver does not follow zones", hint='set changes = "none"')
    if not spec.transfer.updates and not placing.changes_itself(spec):
        raise UsageError(
            "options.changes needs a primary that takes dynamic updates",
            hint='set transfer.updates = true, or choose the primary "zones@engine", which changes its zones itself',
        )
    if changes == "catalog" and spec.transfer.provisioning != "catalog":
        raise UsageError(
            'options.changes = "catalog" needs a catalog zone',
            hint='set transfer.provisioning = "catalog"',
        )


def check_questions(spec: TrialSpec) -> None:
    """Refuse a trial without anything to ask, and options that do not belong to its queries."""
    if spec.queries is not None:
        check_own_queries(spec, spec.queries)
    own = spec.queries is not None and spec.queries.name
    if spec.runs_already and not spec.dataset.zones and not own:
        raise UsageError(
            "there is nothing to ask the running server",
            hint="name a file of queries, --set queries.file=queries.txt, or the [dataset] whose zones it serves",
        )


def no_zones(what: str) -> UsageError:
    """The error that ``what`` needs the names of the zones of the running server."""
    return UsageError(
        f"{what} needs the names of the zones of the running server",
        hint='name the [dataset] that it serves, e.g. kind = "files" and files = "zones/*.zone"',
    )


def check_transfers(spec: TrialSpec) -> None:
    """Refuse transfers from a running server that need the names of its zones, its key or its certificate."""
    if not spec.dataset.zones:
        raise no_zones(f"the procedure {spec.procedure}")
    if spec.transfer.tsig:
        raise UsageError(
            f'transfer.transport = "{spec.transfer.transport}": the running server does not know the key that dnsrig makes',
            hint="set a transport without tsig; `dnsrig transfer --tsig` takes a key of yours",
        )
    if spec.transfer.tls and spec.options.get("verify", "none") != "none":
        raise UsageError(
            f"options.verify = {spec.options['verify']!r}: dnsrig has no certificate of the running server",
            hint="--set options.verify=none",
        )


def refuse_for_running(spec: TrialSpec, needed: Mapping[str, Scalar]) -> None:
    """Refuse options that dnsrig could only do with a server that it starts. ``needed``: option -> the only value."""
    for name, wanted in needed.items():
        if spec.options.get(name, wanted) != wanted:
            raise UsageError(
                f"options.{name} = {spec.options[name]!r}: it needs a server that dnsrig starts, and hosts.{spec.subject}"
                " runs already",
                hint=f"set options.{name} = {wanted!r}".replace("'", '"'),
            )


def _check_own_zones(spec: TrialSpec) -> None:
    """Refuse options that need more than the records of your own zones, which are queried in the order of their
    files."""
    for name, wanted in {
        "queried_share": 1.0,
        "missing_share": 0.0,
        "popularity": "uniform",
    }.items():
        if spec.options.get(name, wanted) != wanted:
            raise UsageError(
                f"options.{name} = {spec.options[name]!r}: dnsrig knows no more of your own zones than their records",
                hint=f"set {name} = {wanted!r}".replace("'", '"'),
            )


def _check_complete(spec: TrialSpec, queries: QueriesSpec, edns: list[str]) -> None:
    """Refuse settings of EDNS for queries that are sent as they are."""
    if edns or spec.options["edns_bytes"] != load_arguments.OPTIONS["edns_bytes"]:
        key = f"queries.{edns[0]}" if edns else "options.edns_bytes"
        raise UsageError(
            f"{key}: the queries of {queries.name} are complete, each with flags and EDNS of its own",
            hint="leave it out, or give a text file with a name and a type on each line",
        )


def check_own_queries(spec: TrialSpec, queries: QueriesSpec) -> None:
    """Refuse options that choose names of the dataset, if a file has the names, and settings of EDNS without EDNS."""
    edns = [name for name in query_files.EDNS if queries.parameters[name]]
    if edns and not spec.options["edns_bytes"]:
        raise UsageError(
            f"queries.{edns[0]} needs EDNS, and options.edns_bytes = 0 switches it off",
            hint="leave edns_bytes out: the default is 1232",
        )
    if not queries.name:
        return
    if queries.complete:
        _check_complete(spec, queries, edns)
    for name, wanted in {"queried_share": 1.0, "missing_share": 0.0, "popularity": "uniform"}.items():
        if spec.options.get(name, wanted) != wanted:
            raise UsageError(
                f"options.{name} = {spec.options[name]!r} chooses names of the dataset, but {queries.name} has the queries",
                hint="leave it out; queries.popularity draws from the file" if name == "popularity" else "leave it out",
            )
    if queries.parameters["passes"] and (not spec.options.get("rate_qps", 0.0) or spec.options.get("poisson")):
        raise UsageError(
            "queries.passes needs a fixed rate: only then is it known when the file was asked so often",
            hint="use the procedure latency, set options.rate_qps, and leave options.poisson out",
        )


def checks(spec: TrialSpec) -> list[str]:
    """The manipulation checks while queries are sent to the server under test."""
    options = spec.options
    found = ["query-transport"]
    if "rate_qps" in options:
        found += ["rate", "answers-good"]
        found += ["names-missing"] if spec.queries is None or not spec.queries.name else []
    if options.get("queries_per_connection") and options["transport"] in load_arguments.ENCRYPTED:
        found += ["sessions-resumed", *(["early-data"] if options["early_data"] else [])]
    if options["serve_as"] == "resolver":
        found += ["links-kept-up", "cache"]
    if resolver_level.able(spec):
        found += ["resolver-level"]
    server = spec.server
    if options["serve_as"] == "secondary" and server is not None and driver_of(server).answers_zones:
        found += ["provisioning"]
    if options["transfers"] != "none":
        found += ["transfers-meanwhile", *(["connections-per-zone"] if spec.dataset.zones > 1 else [])]
    if options["changes"] != "none":
        found += ["changes-made", *(["changes-served", "change-delay"] if spec.primaries else [])]
    return found


def bring_up(context: TrialContext, refusal: Callable[[float], str] | None = None) -> str:
    """The phase `setup`: every server answers all its zones, the primary first.

    ``refusal`` is called before the server under test starts, with the limit in seconds until it is ready. If it
    returns a reason, that server does not start, and this function returns the reason.
    """
    with context.phase("setup"):
        context.start_watch()
        if context.spec.options.get("changes", "none") != "none" and placing.changes_itself(context.spec):
            context.servers.own_changes["primary"] = _changes(context)
        for name, host in context.spec.hosts.items():
            limit_s = float(context.option("ready_limit_s"))
            if name == context.spec.subject and resolver_level.able(context.spec):
                resolver_level.ask_twin(context, limit_s=limit_s)
            if name == context.spec.subject and refusal is not None and (reason := refusal(limit_s)):
                return reason
            if host.role is not None:
                context.start_ready(name, limit_s=limit_s)
    return ""


def settle(context: TrialContext) -> None:
    """Wait while servers that have just started write zones and finish connections."""
    time.sleep(float(context.option("settle_s")))


def search(context: TrialContext, name: str, *, limit_s: float) -> LoadResult:
    """Search the highest rate that the server under test holds, with the load ``name``."""
    words = _words(context, name, load_arguments.ramp(context.spec.options))
    if generators.are_led(context.spec):
        led = _led(context, name, words, writes=False)
        led.search(limit_s)
        return led.leaders()
    return _asked(context, name, words, limit_s)


def ask(
    context: TrialContext, name: str, rate_qps: float, duration_s: float, *, limit_s: float, out: Path | None = None
) -> Callable[[], LoadResult]:
    """Send the load ``name`` to the server under test at a fixed rate, and wait for its end.

    Return a function for the result. It may take a while, so call it when everything is measured.
    """
    options = context.spec.options
    model = load_arguments.fixed_rate(
        rate_qps,
        duration_s=duration_s,
        interval_s=min(float(options.get("interval_s", 1.0)), duration_s),
        poisson=bool(options.get("poisson", False)),
    )
    if out is not None and context.spec.queries is not None and (passes := context.spec.queries.parameters["passes"]):
        model.append(f"--passes={passes}")
    words = _words(context, name, model)
    if out is not None and (rows := int(options["query_rows"])):
        words.append(f"--rows={rows}")
    if generators.are_led(context.spec):
        led = _led(context, name, words)
        led.begin()
        led.wait(limit_s + generators.LEAD_NS / 1e9)
        return partial(led.merged, out)
    load = _asked(context, name, [*words, *([f"--out={out}"] if out is not None else [])], limit_s)
    return lambda: load


def _led(context: TrialContext, name: str, words: list[str], *, writes: bool = True) -> Led:
    whole = [*context.instruments.load(context.spec.subject), *words]
    return generators.ready(context, name, lambda host: whole, reads=queried_zones(context), writes=writes)


def _words(context: TrialContext, name: str, model: list[str]) -> list[str]:
    """Arguments of `load` after the address of the server."""
    spec, zones = context.spec, queried_zones(context)
    options = spec.options
    recursive = answering(options) == "resolver"
    return [
        *load_arguments.queries(options, zones, seed=SEEDS[name], recursive=recursive, asked=spec.queries),
        *load_arguments.clients(options),
        *model,
    ]


def _asked(context: TrialContext, name: str, words: list[str], limit_s: float) -> LoadResult:
    """Result of a load with one generator on this machine."""
    load = context.instruments.start_load(name, context.spec.subject, words, context.spec.generators[0])
    return LoadResult.model_validate(context.wait(load, limit_s=limit_s))


def queried_zones(context: TrialContext) -> Path:
    """The list of the queried zones: the first ``queried_share`` of all. Their description is beside it."""
    whole = context.workspace.dataset
    if float(context.option("queried_share")) >= 1:
        return whole / "zones.list"
    part = context.workspace.state / "queried"
    if not part.exists():
        part.mkdir(parents=True)
        shutil.copyfile(whole / "dataset.json", part / "dataset.json")
        with (whole / "zones.list").open() as lines:
            (part / "zones.list").write_text("".join(line for line, _ in zip(lines, range(_queried(context)))))
    return part / "zones.list"


def _queried(context: TrialContext) -> int:
    return max(1, round(context.spec.dataset.zones * float(context.option("queried_share"))))


@contextmanager
def changing(context: TrialContext, *, duration_s: float, expected_s: float) -> Iterator[None]:
    """Change zones or members of the catalog on the primary while the code inside runs, if the options say so.

    The code inside begins when the server under test has served the first change. ``expected_s``: expected duration;
    ``duration_s``: limit.
    """
    if context.option("changes") == "none":
        yield
        return
    if follows := bool(context.spec.primaries):
        follow = context.instruments.start_follow(
            context.spec.subject, _followed(context, expected_s), rate_per_s=FOLLOW_RATE_PER_S
        )
    with _changes_made(context, duration_s=duration_s + FOLLOW_LIMIT_S):
        try:
            if follows:
                with suppress(Overdue):
                    context.wait(follow, limit_s=FOLLOW_LIMIT_S, until="changed")
            yield
        finally:
            if follows:
                context.instruments.stop("follow")


@contextmanager
def _changes_made(context: TrialContext, *, duration_s: float) -> Iterator[None]:
    if "primary" in context.servers.own_changes:
        context.changes.begin("primary")
        try:
            yield
        finally:
            context.changes.end("primary")
        return
    context.instruments.start_change("change", "primary", _updates(context, duration_s))
    try:
        yield
    finally:
        context.instruments.stop("change")


def _followed(context: TrialContext, expected_s: float) -> Path:
    """A list of zones that will change soon, picked evenly."""
    first = _first_changed(context)
    changes = float(context.option("changes_per_s")) * (expected_s + FOLLOW_LIMIT_S)
    among = max(1, min(context.spec.dataset.zones - first, math.ceil(changes)))
    every = -(-among // FOLLOWED_MOST)
    listed = context.workspace.state / "followed.list"
    listed.parent.mkdir(parents=True, exist_ok=True)
    with (context.workspace.dataset / "zones.list").open() as lines:
        listed.write_text("".join(itertools.islice(lines, first, first + among, every)))
    return listed


def _first_changed(context: TrialContext) -> int:
    """Number of the first zone that changes. Queried members stay in the catalog, unless all are queried."""
    catalog, part = context.option("changes") == "catalog", float(context.option("queried_share")) < 1
    return _queried(context) if catalog and part else 0


@contextmanager
def transferring(context: TrialContext, *, duration_s: float) -> Iterator[None]:
    """Transfer the zones of the primary repeatedly while the code inside runs, if the options say so."""
    if context.option("transfers") == "none":
        yield
        return
    how = {
        **transfer_instrument.OPTIONS,
        "policy": context.option("transfers"),
        "window": context.option("transfers_window"),
    }
    words = [*transfer_instrument.policy(how), "--repeat", f"--duration-s={duration_s:g}"]
    context.instruments.start_transfer("transfer", "client", "primary", words, options=how)
    try:
        yield
    finally:
        context.instruments.stop("transfer")


def why_no_transfers(context: TrialContext) -> str:
    """A sentence if transfers ran meanwhile and all failed; otherwise empty. An unfinished transfer is load, too."""
    if context.option("transfers") == "none":
        return ""
    summary = context.instruments.started["transfer"].summary
    assert summary is not None, "an instrument that is stopped without a summary is an error"
    failures = transfer_instrument.outcomes(summary)
    return "" if summary["done"] or not failures else f"no zone was transferred meanwhile: {failures}"


def _changes(context: TrialContext) -> Changes:
    """The changes on the primary."""
    per_s = float(context.option("changes_per_s"))
    if context.option("changes") == "zones":
        return Changes("zones", per_s)
    first = _first_changed(context)
    # Every other change adds a member again.
    absent = min(ABSENT_MOST, round(per_s * ABSENT_S / 2), (context.spec.dataset.zones - first) // 2)
    return Changes("catalog", per_s, first, max(1, absent))


def _updates(context: TrialContext, duration_s: float) -> list[str]:
    """Arguments of `change`, which makes these changes by dynamic updates."""
    changes, dataset = _changes(context), context.workspace.dataset
    listed = dataset / "zones.list"
    words = [
        f"--changes-per-s={changes.per_s:.12g}",
        f"--duration-s={duration_s:g}",
        f"--out={context.directory / 'changes.arrow'}",
        *context.instruments.signed(),
    ]
    if changes.of == "zones":
        return [f"--zones={listed}", *words]
    members = [f"--members={listed}", f"--first-member={changes.first_member}", f"--absent={changes.absent}"]
    return [f"--catalog={datasets.catalog_of(dataset)[0]}", *members, *words]


def drain(context: TrialContext) -> None:
    """The phase `drain`."""
    with context.phase("drain"):
        resolver_level.ask_itself(context)
        time.sleep(float(context.option("drain_s")))
        context.check_alive()


def concluded(load: LoadResult) -> Result:
    """Result of a load at a fixed rate."""
    if not load.answered:
        wrong = f" as expected: {load.wrong_in_words}" if any(load.wrong.values()) else ""
        return Result("server-failed", f"none of {load.sent:,} queries was answered{wrong}")
    if reason := validity.why_not(load):
        return Result("invalid", reason)
    return Result("done")


def held_nothing(context: TrialContext, ramp: LoadResult) -> Result:
    """Result of a ramp with too few answers even at its lowest rates."""
    start = float(context.option("ramp_start_qps"))
    wrong = f" as expected; others: {ramp.wrong_in_words}" if any(ramp.wrong.values()) else ""
    return Result(
        "timeout",
        f"no rate held, from {start:,.0f} QPS down: {ramp.answered:,} of {ramp.sent:,} queries were answered{wrong}",
    )
