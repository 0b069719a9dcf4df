"""Procedures latency and capacity: hosts, arguments of the instruments, order of events, verdicts. No server, no
clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig import datasets
from dnsrig.errors import UsageError
from dnsrig.experiment import estimate, model, trial_specs
from dnsrig.experiment.executors import executor
from dnsrig.lab.network import Network
from dnsrig.procedures import HostRole, capacity, latency
from dnsrig.procedures.context import placing
from dnsrig.procedures.context.instruments import Instruments
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.procedures.instrument import Overdue
from dnsrig.procedures.parts import client_classes, load_arguments, resolver_level, serving, validity
from dnsrig.procedures.parts.client_classes import over_tls
from dnsrig.rundir import TrialSpec
from dnsrig.runs.load_result import LoadResult
from dnsrig.servers import keys
from dnsrig.servers.placement import Changes

DOCUMENT: dict[str, Any] = {
    "title": "t",
    "question": "q",
    "procedure": "latency",
    "limit_s": 60.0,
    "dataset": {"kind": "tiny-zones", "zones": 10},
    "hosts": {"primary": {"server": "knot@forky"}},
    "options": {"settle_s": 0.0, "drain_s": 0.0},
}
LOAD = {
    "model": "rate",
    "due": 100,
    "sent": 100,
    "unsent": 0,
    "answered": 100,
    "lag_ns": {"p99": 20_000},
    "sent_latency_ns": {"p99": 400_000},
    "busy_share": 0.3,
}
RAMP = {**LOAD, "model": "ramp", "capacity_qps": 47_900.0, "capacity_is_lower_bound": False}
HELD = {"rate_qps": 47_900.0, "holds": True}
CAPPED = {**RAMP, "capacity_is_lower_bound": True, "steps": [HELD]}


def spec(overlay: Mapping[str, Any] | None = None, **options: Any) -> TrialSpec:
    raw = model.merged(model.merged(DOCUMENT, {"options": options}), overlay or {})
    (point,) = model.points(model.validate(raw, "test"))
    return trial_specs.provisional("test", point, [0, 1])


class FakeContext:
    """Takes down what a procedure does, and answers as told. It is each of its own parts."""

    def __init__(self, made: TrialSpec, directory: Path, **summaries: Any) -> None:
        self.spec, self.directory, self.keys = made, directory, keys.make()
        self.state, self.dataset = directory / "state", datasets.folder(made.dataset.key)
        self.workspace = self.servers = self.instruments = self.changes = self
        self.summaries = {"ramp": RAMP, "warmup": LOAD, "load": LOAD, **summaries}
        self.done: list[str] = []
        self.arguments: dict[str, list[str]] = {}
        self.started: dict[str, Any] = {}
        self.own_changes: dict[str, Changes] = {}

    def option(self, name: str) -> Any:
        return self.spec.options[name]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.done.append(name)
        yield

    def drain(self) -> None:
        self.done.append("drain")

    @contextmanager
    def profiled(self) -> Iterator[None]:
        yield

    def start_ready(self, name: str, *, limit_s: float) -> None:
        self.done.append(f"ready {name}")

    def start_load(self, name: str, target: str, arguments: list[str], host: str = "") -> str:
        self.done.append(f"{name} on {target}")
        self.arguments[name] = arguments
        return name

    def start_change(self, name: str, target: str, arguments: list[str]) -> str:
        self.done.append(f"{name} on {target}")
        self.arguments[name] = arguments
        return name

    def start_follow(self, target: str, zones: Path, *, rate_per_s: int) -> str:
        self.done.append(f"follow on {target}")
        self.arguments["follow"] = zones.read_text().splitlines()
        return "follow"

    def start_transfer(self, name: str, host: str, target: str, arguments: list[str], **more: Any) -> Any:
        self.done.append(f"{name} on {host}")
        self.arguments[name] = arguments
        return name

    def begin(self, name: str) -> None:
        self.done.append(f"begin changes on {name}")

    def end(self, name: str) -> None:
        self.done.append(f"end changes on {name}")

    def stop(self, name: str) -> None:
        self.done.append(f"stop {name}")
        self.started[name] = SimpleNamespace(summary=self.summaries.get(name))

    def wait(self, name: str, *, limit_s: float, until: str = "summary") -> Any:
        self.done.append(f"{until} of {name}") if until != "summary" else None
        if until == "changed":
            return {"event": "changed"}
        if isinstance(self.summaries[name], Exception):
            raise self.summaries[name]
        return self.summaries[name]

    def signed(self) -> list[str]:
        return Instruments.signed(self)  # type: ignore[arg-type]

    def start_watch(self) -> None: ...
    def count_threads(self) -> None: ...
    def check(self) -> None: ...
    def check_alive(self) -> None: ...


def measured(procedure: ModuleType, made: TrialSpec, directory: Path, **summaries: Any) -> tuple[Any, FakeContext]:
    context = FakeContext(made, directory, **summaries)
    return procedure.measure(context), context


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    (tmp_path / "zones.list").write_text("".join(f"z{n}.example\tzones/{n}\n" for n in range(10)))
    (tmp_path / "dataset.json").write_text('{"catalog": "catalog.example"}')
    return tmp_path


def with_zones(made: TrialSpec, zones: Path) -> TrialSpec:
    return made.model_copy(update={"dataset": made.dataset.model_copy(update={"key": str(zones)})})


def test_order_of_a_trial(zones: Path) -> None:
    result, context = measured(latency, with_zones(spec(rate_qps=5000), zones), zones)
    assert (result.outcome, result.reason) == ("done", "")
    load = ["warmup", "warmup on primary", "measure", "load on primary", "drain"]
    assert context.done == ["setup", "ready primary", *load]
    assert {"--rate=5000", "--duration-s=10", "--interval-s=1", f"--out={zones}"} <= set(context.arguments["load"])
    assert not any(word.startswith("--out") for word in context.arguments["warmup"]), "it is not counted"


def test_the_rate_is_a_share_of_what_the_ramp_found(zones: Path) -> None:
    _, context = measured(latency, with_zones(spec(rate_share=0.2), zones), zones)
    assert "--ramp" in context.arguments["ramp"]
    assert "--rate=9500" in context.arguments["load"] and "--rate=9500" in context.arguments["warmup"]


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_rounding_down_keeps_two_digits(rate_qps: float) -> None:
    rounded = load_arguments.rounded_down(rate_qps)
    assert 0.9 * rate_qps <= rounded <= rate_qps * (1 + 1e-6)
    assert f"{rounded:.1e}" == f"{rounded:.6e}".replace("00000e", "e")


def test_nothing_held(zones: Path) -> None:
    nothing = {**RAMP, "capacity_qps": None, "answered": 3}
    for procedure, name in ((latency, "ramp"), (capacity, "load")):
        made = with_zones(spec({"procedure": procedure.__name__.rpartition(".")[2]}), zones)
        result, _ = measured(procedure, made, zones, **{name: nothing})
        assert result.outcome == "timeout"
        assert "from 2,000 QPS down: 3 of 100 queries were answered" in result.reason


def test_a_server_that_answers_nothing_has_failed(zones: Path) -> None:
    made = with_zones(spec(rate_qps=10), zones)
    result, _ = measured(latency, made, zones, load={**LOAD, "answered": 0})
    assert (result.outcome, result.reason) == ("server-failed", "none of 100 queries was answered")


def test_a_search_that_does_not_end(zones: Path) -> None:
    made = with_zones(spec({"procedure": "capacity"}), zones)
    result, _ = measured(capacity, made, zones, load=Overdue("too long"))
    assert (result.outcome, result.reason) == ("timeout", "the search was not over after 60 s")


CHURN = {
    "hosts": {"secondary": {"server": "bind@forky"}},
    "transfer": {"updates": True, "provisioning": "catalog", "transport": "tcp+tsig"},
}


def test_members_that_are_asked_for_stay(zones: Path) -> None:
    made = spec(CHURN, serve_as="secondary", changes="catalog", changes_per_s=20, queried_share=0.5, rate_qps=10)
    _, context = measured(latency, with_zones(made, zones), zones)
    measuring = context.done[context.done.index("measure") :]
    assert measuring == ["measure", "load on secondary", "stop follow", "stop change", "drain"]
    change = context.arguments["change"]
    assert {"--catalog=catalog.example", "--first-member=5", "--absent=2", "--changes-per-s=20"} <= set(change)
    assert any(word.startswith("--tsig=hmac-sha256:dnsrig-transfer:") for word in change)
    asked = next(word for word in context.arguments["load"] if word.startswith("--zones="))
    assert Path(asked.partition("=")[2]).read_text().splitlines() == [f"z{n}.example\tzones/{n}" for n in range(5)]


def test_a_primary_that_changes_by_itself_is_told_when(zones: Path) -> None:
    itself = {**CHURN, "transfer": {"provisioning": "catalog"}, "hosts": {"primary": {"server": "zones@engine"}}}
    itself["hosts"]["secondary"] = {"server": "bind@forky"}
    made = spec(itself, serve_as="secondary", changes="catalog", changes_per_s=20, queried_share=0.5, rate_qps=10)
    _, context = measured(latency, with_zones(made, zones), zones)
    measuring = context.done[context.done.index("measure") :]
    assert measuring == ["measure", "load on secondary", "stop follow", "end changes on primary", "drain"]
    before = ["follow on secondary", "begin changes on primary", "changed of follow", "measure"]
    assert [what for what in context.done if what in before] == before
    assert context.own_changes == {"primary": Changes("catalog", 20.0, first_member=5, absent=2)}, "known at its start"
    made = spec(itself, serve_as="secondary", changes="none", rate_qps=10)
    _, context = measured(latency, with_zones(made, zones), zones)
    assert not context.servers.own_changes and not [what for what in context.done if "changes" in what]


def test_the_change_stream_ends_with_a_failed_load(zones: Path) -> None:
    made = with_zones(spec(CHURN, serve_as="secondary", changes="zones", rate_qps=10), zones)
    context = FakeContext(made, zones, load=Overdue("too long"))
    with pytest.raises(Overdue):
        latency.measure(context)  # type: ignore[arg-type]
    assert context.done[-2:] == ["stop follow", "stop change"]
    assert f"--zones={zones / 'zones.list'}" in context.arguments["change"]


def test_what_is_measured_begins_when_the_secondary_follows_the_changes(zones: Path) -> None:
    """Else a trial of a few seconds has a secondary at rest in its first ones, and may be over before the first change
    arrives."""
    made = with_zones(spec(CHURN, serve_as="secondary", changes="catalog", queried_share=0.5, rate_qps=10), zones)
    _, context = measured(latency, made, zones)
    at = context.done.index
    assert at("follow on secondary") < at("change on primary") < at("changed of follow") < at("measure")
    assert [line.split("\t")[0] for line in context.arguments["follow"]] == [f"z{n}.example" for n in range(5, 10)]
    of_changes = {"changes-made", "changes-served", "change-delay"}
    assert of_changes <= set(serving.checks(made))
    assert not of_changes & set(serving.checks(with_zones(spec(rate_qps=10), zones)))


def test_a_resolver_is_asked_to_recurse_and_never_twice_for_a_missing_name(
    zones: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        resolver_level, "able", lambda spec: None
    )  # there is nobody to be asked for the twin and the counters
    resolver = {"hosts": {"resolver": {"server": "unbound@forky"}}}
    made = with_zones(spec(resolver, serve_as="resolver", missing_share=1.0, rate_qps=10), zones)
    _, context = measured(latency, made, zones)
    assert "--recursion-desired" in context.arguments["load"]
    assert context.done[1:3] == ["ready primary", "ready resolver"], "authority first"
    seeds = {name: [w for w in words if w.startswith("--seed")] for name, words in context.arguments.items()}
    assert seeds["warmup"] != seeds["load"]


@pytest.mark.parametrize(
    ("overlay", "options", "message"),
    [
        ({}, {"serve_as": "client"}, "serve_as = 'client'"),
        ({}, {"changes": "all"}, "changes = 'all'"),
        ({}, {"transport": "doh3"}, "transport = 'doh3'"),
        ({}, {"missing_share": 2.0}, "missing_share = 2.0"),
        ({}, {"clients": 0}, "clients = 0"),
        ({}, {"transport": "dot", "early_data": True, "resumption": False}, "sessions that are resumed"),
        ({}, {"transport": "doh", "early_data": True}, "safe to repeat"),
        ({}, {"transport": "doq", "proxy_protocol": True}, "no client is announced over DoQ"),
        ({"main_metric": "speed"}, {}, "no metric 'speed'"),
        ({}, {"changes": "zones"}, "takes dynamic updates"),
        ({"transfer": {"updates": True}}, {"changes": "catalog"}, "needs a catalog zone"),
        (
            {"hosts": {"resolver": {"server": "unbound@forky"}}},
            {"serve_as": "resolver", "changes": "zones"},
            "resolver",
        ),
        ({"hosts": {"primary": {"server": "unbound@forky"}}}, {}, "Unbound cannot be a primary"),
        ({"hosts": {"primary": {"server": "powerdns@forky"}}}, {"transport": "dot"}, "has no DoT"),
        (
            {"hosts": {"primary": {"server": "echo@engine"}, "secondary": {"server": "nsd@forky"}}},
            {"serve_as": "secondary"},
            "has no zones to send",
        ),
    ],
)
def test_what_cannot_be_is_refused(overlay: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        spec(overlay, **options)
    assert caught.value.hint


def test_echo_stands_where_a_secondary_would_whatever_is_transferred() -> None:
    made = spec({**CHURN, "hosts": {"secondary": {"server": "echo@engine"}}}, serve_as="secondary")
    assert made.subject == "secondary" and made.hosts["secondary"].role == "secondary"


def test_dot_is_for_the_server_under_test() -> None:
    assert over_tls(spec(transport="dot")) and not over_tls(spec(transport="tcp"))


def test_the_estimate_knows_how_long_is_measured() -> None:
    short, long = (estimate.of_trial(spec(rate_qps=10, duration_s=seconds)).expected_s for seconds in (1.0, 61.0))
    assert long - short == pytest.approx(60)
    assert estimate.of_trial(spec({"procedure": "capacity"})).expected_s > long - 61


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"unsent": 7}, "never sent 7 of 100 queries"),
        ({"unsent": 7, "waited_for_id": 1}, "never sent 7 of 100 queries that were due, as no message id was free"),
        ({"answered": 1000, "wrong_matches_max": 1}, ""),
        ({"answered": 1000, "wrong_matches_max": 2}, "up to 2 of 1,000 answers may belong to earlier queries"),
        ({"intervals_lost": 5}, "the instrument lost 5 intervals"),
        ({"lag_ns": {"p99": 90_000}, "sent_latency_ns": {"p99": 50_000}}, ""),
        ({"lag_ns": {"p99": 300_000}}, "0.3 ms after they were due or later, where 0.1 ms are allowed"),
        ({"lag_ns": {"p99": 900_000}, "sent_latency_ns": {"p99": 9_500_000}}, ""),
        ({"lag_ns": {"p99": 1_100_000}, "sent_latency_ns": {"p99": 900_000_000}}, "where 1 ms are allowed"),
        ({"busy_share": 1.0}, ""),
        ({"model": "closed", "busy_share": 0.97}, ""),
        ({"model": "closed", "busy_share": 0.99}, "had work 99% of the time"),
        (RAMP, ""),
        ({**RAMP, "capacity_is_lower_bound": True}, "held 47,900 QPS"),
        ({**CAPPED, "steps": [HELD, {"rate_qps": 95_800.0, "holds": False}]}, "held 47,900 QPS"),
        (CAPPED, ""),
    ],
)
def test_whether_the_instrument_kept_up(changed: dict[str, Any], words: str) -> None:
    reason = validity.why_not(LoadResult.model_validate({**LOAD, **changed}))
    assert words in reason and bool(words) == bool(reason)


def test_a_late_instrument_makes_the_trial_invalid(zones: Path) -> None:
    for procedure, late in ((latency, {**LOAD, "unsent": 1}), (capacity, {**RAMP, "capacity_is_lower_bound": True})):
        made = with_zones(spec({"procedure": procedure.__name__.rpartition(".")[2]}), zones)
        result, _ = measured(procedure, made, zones, load=late)
        assert result.outcome == "invalid" and "instrument" in result.reason


def test_a_search_that_ends_at_its_highest_rate_reports_that_rate(zones: Path) -> None:
    made = with_zones(spec({"procedure": "capacity", "options": {"ramp_most_qps": 47_900}}), zones)
    result, _ = measured(capacity, made, zones, load=CAPPED)
    assert result.outcome == "done"
    assert result.reason == "even the highest rate of the search held: options.ramp_most_qps = 47900"
    result, _ = measured(capacity, made, zones, load=RAMP)
    assert (result.outcome, result.reason) == ("done", "")


def test_every_option_is_explained() -> None:
    explained = (latency.__doc__ or "") + (capacity.__doc__ or "")
    ours = set(latency.OPTIONS) - {"probe_rate_per_s", "ready_limit_s"}
    assert not [name for name in ours if f"``{name}``" not in explained]
    assert set(serving.OPTIONS) <= set(capacity.OPTIONS)


def arguments(**options: Any) -> list[str]:
    """Arguments of `load` for clients."""
    return load_arguments.clients({**latency.OPTIONS, **options})


def test_early_data_and_the_method_of_requests_go_to_the_transports_that_have_them() -> None:
    asked = {"early_data": True, "doh_method": "get"}
    assert "--early-data" in arguments(transport="dot", **asked)
    assert {"--early-data", "--doh-method=get"} <= {*arguments(transport="doh", **asked)}
    assert not {"--early-data", "--doh-method=get"} & {*arguments(transport="tcp", **asked)}
    assert "--doh-method=post" in arguments(transport="doh") and "--early-data" not in arguments(transport="doq")


def test_clients_are_announced_if_that_is_asked_for() -> None:
    assert "--proxy-protocol" in arguments(transport="dot", proxy_protocol=True)
    assert "--proxy-protocol" not in arguments(transport="dot")


def test_handshakes_are_checked_where_each_query_has_a_connection() -> None:
    asked = {"queries_per_connection": 1, "early_data": True}
    assert {"sessions-resumed", "early-data"} <= {*serving.checks(spec(transport="doq", **asked))}
    assert not {"sessions-resumed", "early-data"} & {*serving.checks(spec(transport="tcp", **asked))}
    assert "sessions-resumed" not in serving.checks(spec(transport="dot"))


def test_a_path_lies_before_those_who_ask_unless_there_are_primaries() -> None:
    made = spec({"path": {"delay_ms": 10}, "link": "tun"}, rate_qps=100.0)
    assert [link.ends for link in made.links if link.emulated] == [("primary", "observer")]
    resolving = {"hosts": {"resolver": {"server": "unbound@forky"}}, "path": {"delay_ms": 10}, "link": "tun"}
    made = spec(resolving, serve_as="resolver", rate_qps=100.0)
    assert [link.ends for link in made.links if link.emulated] == [("primary", "resolver")]


def test_an_experiment_may_name_the_metric_that_answers_its_question() -> None:
    assert spec().main_metric == "p99_ms"
    assert spec({"main_metric": "capacity_qps"}).main_metric == "capacity_qps"


BUSY = {"zones": 10, "done": 3, "outcomes": {"done": 3}}


def test_zones_are_transferred_while_the_primary_is_asked(zones: Path) -> None:
    made = with_zones(spec(transfers="pipelined", transfers_window=7, rate_qps=10), zones)
    assert list(made.hosts) == ["primary", "client", "observer"]
    assert {link.ends for link in made.links} == {("primary", "client"), ("observer", "primary")}
    result, context = measured(latency, made, zones, transfer=BUSY)
    measuring = context.done[context.done.index("measure") :]
    assert measuring == ["measure", "transfer on client", "load on primary", "stop transfer", "drain"]
    assert {"--policy=pipelined", "--window=7", "--repeat"} <= set(context.arguments["transfer"])
    assert result.outcome == "done"


def test_transfers_of_which_none_was_done(zones: Path) -> None:
    made = with_zones(spec(transfers="one", rate_qps=10), zones)
    refused = {**BUSY, "done": 0, "outcomes": {"done": 0, "refused": 9}}
    result, _ = measured(latency, made, zones, transfer=refused)
    assert (result.outcome, result.reason) == ("server-failed", "no zone was transferred meanwhile: 9 refused")
    under_way = {**BUSY, "done": 0, "outcomes": {"done": 0}}
    assert measured(latency, made, zones, transfer=under_way)[0].outcome == "done"


def test_only_a_primary_gives_zones_away() -> None:
    with pytest.raises(UsageError, match="sends no zones here"):
        spec({"hosts": {"secondary": {"server": "bind@forky"}}}, serve_as="secondary", transfers="one")
    with pytest.raises(UsageError, match=r"options\.transfers"):
        spec(transfers="all")


def served(**options: Any) -> dict[str, HostRole]:
    return serving.hosts({**latency.OPTIONS, **options})


@pytest.mark.parametrize(
    ("options", "names", "joined", "far"),
    [
        ({}, ["primary"], [], [("primary", "observer")]),
        ({"serve_as": "secondary"}, ["primary", "secondary"], [("primary", "secondary")], [("primary", "secondary")]),
        ({"serve_as": "resolver"}, ["primary", "resolver"], [("primary", "resolver")], [("primary", "resolver")]),
        (
            {"serve_as": "frontend", "behind": "primary"},
            ["primary", "frontend"],
            [("primary", "frontend")],
            [("primary", "frontend")],
        ),
        (
            {"serve_as": "frontend", "behind": "resolver"},
            ["primary", "resolver", "frontend"],
            [("primary", "resolver"), ("primary", "frontend"), ("resolver", "frontend")],
            [("primary", "frontend")],
        ),
        (
            {"serve_as": "frontend", "behind": "secondary"},
            ["primary", "secondary", "frontend"],
            [("primary", "secondary"), ("primary", "frontend"), ("secondary", "frontend")],
            [("primary", "frontend")],
        ),
        (
            {"serve_as": "secondary", "generators": 2},
            ["primary", "secondary", "generator-1", "generator-2"],
            [("primary", "secondary"), ("secondary", "generator-1"), ("secondary", "generator-2")],
            [("primary", "secondary")],
        ),
        (
            {"generators": 1, "transfers": "one"},
            ["primary", "client", "generator-1"],
            [("primary", "client"), ("primary", "generator-1")],
            [("primary", "generator-1")],
        ),
    ],
    ids=["primary", "secondary", "resolver", "front", "resolver behind", "secondary behind", "two ask", "busy"],
)
def test_hosts_and_their_links(
    options: dict[str, Any], names: list[str], joined: list[tuple[str, str]], far: list[tuple[str, str]]
) -> None:
    found = served(**options)
    assert list(found) == names
    assert [name for name, host in found.items() if host.under_test] == [options.get("serve_as", "primary")]
    assert all(host.role in (name, None) for name, host in found.items())
    assert serving.links(found) == joined
    assert serving.far(found, options) == far


RESOLVER = {"hosts": {"resolver": {"server": "unbound@forky"}}}


@pytest.mark.parametrize(
    ("overlay", "options", "expected"),
    [
        ({}, {"rate_qps": 10.0}, ["query-transport", "rate", "answers-good", "names-missing"]),
        ({"procedure": "capacity"}, {}, ["query-transport"]),
        (
            CHURN,
            {"serve_as": "secondary", "changes": "catalog"},
            [
                *("query-transport", "rate", "answers-good", "names-missing", "provisioning"),
                *("changes-made", "changes-served", "change-delay"),
            ],
        ),
        (
            RESOLVER,
            {"serve_as": "resolver"},
            ["query-transport", "rate", "answers-good", "names-missing", "links-kept-up", "cache", "resolver-level"],
        ),
        (
            {},
            {"transfers": "one", "transport": "doq", "queries_per_connection": 1},
            [
                *("query-transport", "rate", "answers-good", "names-missing", "sessions-resumed"),
                *("transfers-meanwhile", "connections-per-zone"),
            ],
        ),
        (
            {"dataset": {"zones": 1}},
            {"transfers": "one"},
            ["query-transport", "rate", "answers-good", "names-missing", "transfers-meanwhile"],
        ),
        (
            {"transfer": {"updates": True}},
            {"changes": "zones"},
            ["query-transport", "rate", "answers-good", "names-missing", "changes-made"],
        ),
    ],
    ids=["rate", "capacity", "changes", "resolver", "transfers", "one zone", "primary changes"],
)
def test_what_is_checked_while_a_server_is_asked(
    overlay: dict[str, Any], options: dict[str, Any], expected: list[str]
) -> None:
    assert serving.checks(spec(overlay, **options)) == expected


def test_changes_and_transfers_last_as_long_as_what_is_measured_may(zones: Path) -> None:
    """A search may take its limit and 30 s; a load, its duration, its timeout and 30 s. Changes begin up to 15 s
    before."""
    searches = {**CHURN, "procedure": "capacity"}
    made = spec(searches, serve_as="secondary", changes="zones")
    _, context = measured(capacity, with_zones(made, zones), zones)
    assert "--duration-s=105" in context.arguments["change"]
    made = spec(CHURN, serve_as="secondary", changes="zones", rate_qps=10, duration_s=7.0, timeout_s=3.0)
    _, context = measured(latency, with_zones(made, zones), zones)
    assert "--duration-s=55" in context.arguments["change"]
    for procedure, seconds in ((capacity, 90), (latency, 47)):
        name = procedure.__name__.rpartition(".")[2]
        more = {"duration_s": 14.0, "timeout_s": 3.0, "rate_qps": 10} if procedure is latency else {}
        made = spec({"procedure": name}, transfers="one", **more)
        _, context = measured(procedure, with_zones(made, zones), zones, transfer=BUSY)
        assert f"--duration-s={seconds}" in context.arguments["transfer"]


@pytest.mark.parametrize(
    ("share", "per_s", "first", "absent"),
    [
        (0.5, 20.0, 5, 2),
        (0.5, 0.1, 5, 1),
        (0.9, 20.0, 9, 1),
        (1.0, 20.0, 0, 5),
        (1.0, 1.0, 0, 3),
        (0.01, 20.0, 1, 4),
    ],
)
def test_members_that_leave_the_catalog_are_half_of_those_that_are_not_asked_for(
    zones: Path, share: float, per_s: float, first: int, absent: int
) -> None:
    """At most: each is gone for six seconds."""
    made = spec(CHURN, serve_as="secondary", changes="catalog", changes_per_s=per_s, queried_share=share, rate_qps=10)
    context: Any = FakeContext(with_zones(made, zones), zones)
    assert serving._changes(context) == Changes("catalog", per_s, first, absent)


@pytest.mark.parametrize(
    ("procedure", "options", "refused"),
    [
        ("latency", {"rate_qps": 10.0}, ""),
        ("latency", {"rate_qps": 0.0}, "needs a fixed rate"),
        ("latency", {"rate_qps": 10.0, "poisson": True}, "needs a fixed rate"),
        ("capacity", {}, "needs a fixed rate"),
    ],
)
def test_a_file_is_asked_so_often_at_a_fixed_rate_only(
    tmp_path: Path, procedure: str, options: dict[str, Any], refused: str
) -> None:
    (tmp_path / "queries.txt").write_text("a.example A\n")
    overlay = {"procedure": procedure, "queries": {"file": str(tmp_path / "queries.txt"), "passes": 2}}
    if refused:
        with pytest.raises(UsageError, match=refused):
            spec(overlay, **options)
    else:
        assert "names-missing" not in serving.checks(spec(overlay, **options)), "the file has the names"


@pytest.mark.parametrize(
    ("transport", "listens"),
    [
        ("udp", (False, False, False)),
        ("tcp", (False, False, False)),
        ("dot", (True, False, False)),
        ("doh", (False, True, False)),
        ("doq", (False, False, True)),
    ],
)
def test_only_the_server_under_test_listens_for_encrypted_queries(
    zones: Path, transport: str, listens: tuple[bool, bool, bool]
) -> None:
    """It alone has a certificate: zones are transferred in the clear here."""
    made = with_zones(spec({"hosts": {"secondary": {"server": "bind@forky"}}}, serve_as="secondary"), zones)
    changes = {"storage": "disk", "options": {**made.options, "transport": transport}}
    workspace = Workspace(made.model_copy(update=changes), zones / "trial", cast(Network, None))
    for name, expected in (("primary", (False, False, False)), ("secondary", listens)):
        placed = placing.place(workspace, name)
        assert (placed.over_tls, placed.over_https, placed.over_quic) == expected
        assert (placed.state / keys.CERTIFICATE_FILE).exists() is any(expected)
        assert [str(route.primary) for route in placed.routes] == (["198.18.0.1"] if name == "secondary" else [])
        assert [str(address) for address in placed.secondaries] == (
            [made.hosts["secondary"].address] * (name == "primary")
        )


def test_what_load_is_told_of_its_clients() -> None:
    always = ["--transport=udp", "--clients=16", "--timeout-s=1.0", "--real-time"]
    assert arguments() == arguments(resumption=False, early_data=True) == always
    assert arguments(transport="tcp", resumption=False, early_data=True, queries_per_connection=3, clients=2) == [
        *("--transport=tcp", "--clients=2", "--timeout-s=1.0", "--real-time", "--queries-per-connection=3")
    ]
    assert arguments(transport="doh", resumption=False, timeout_s=0.5) == [
        *("--transport=doh", "--clients=16", "--timeout-s=0.5", "--real-time", "--queries-per-connection=0"),
        *("--doh-path=/dns-query{?dns}", "--doh-method=post", "--no-resumption"),
    ]


def test_what_load_is_told_of_its_rate() -> None:
    assert load_arguments.fixed_rate(1e6 / 3, duration_s=10, interval_s=0.5, poisson=False) == [
        *("--rate=333333.333333", "--duration-s=10", "--interval-s=0.5")
    ]
    assert load_arguments.fixed_rate(5, duration_s=1, interval_s=1, poisson=True)[-1] == "--poisson"
    assert load_arguments.ramp(load_arguments.OPTIONS) == [
        *("--ramp", "--duration-s=1.0", "--ramp-start=2000.0", "--ramp-max=400000.0", "--ramp-loss=0.1"),
        *("--ramp-latency-ms=10.0", "--ramp-percentile=99.0", "--ramp-repeats=1", "--ramp-precision=5.0"),
    ]


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({}, 15.38),  # 8 + log2(ln 2 / ln 1.05) = 11.83 steps of 1.3 s
        ({"ramp_step_s": 2.0}, 27.21),
        ({"ramp_repeats": 3}, 2 * 15.38),
        ({"ramp_repeats": 5}, 3 * 15.38),
        ({"ramp_precision_percent": 100.0}, 8 * 1.3),
        ({"ramp_precision_percent": 0.1}, 22.67),
        ({"ramp_precision_percent": 0.0}, 22.67),
    ],
)
def test_how_long_a_search_takes(options: dict[str, float], seconds: float) -> None:
    found = load_arguments.ramp_expected_s({**load_arguments.OPTIONS, **options})
    assert found == pytest.approx(seconds, rel=1e-3)
    whole = {**latency.OPTIONS, **options, "warmup_s": 3.0, "duration_s": 20.0}
    assert latency.expected_s({**whole, "rate_qps": 10.0}) == 23
    assert latency.expected_s({**whole, "rate_qps": 0.0}) == pytest.approx(found + 23)
    of_capacity = {**capacity.OPTIONS, **options, "warmup_s": 3.0}
    assert capacity.expected_s(of_capacity) == pytest.approx(load_arguments.ramp_expected_s(of_capacity) + 3)


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"ramp_repeats": 1}, ""),
        ({"ramp_repeats": 99}, ""),
        ({"ramp_repeats": 2}, "ramp_repeats = 2"),
        ({"ramp_repeats": 101}, "ramp_repeats = 101"),
        ({"ramp_repeats": -1}, "ramp_repeats = -1"),
        ({"ramp_start_qps": 7.0, "ramp_most_qps": 7.0}, ""),
        ({"ramp_start_qps": 7.0, "ramp_most_qps": 6.9}, "ramp_most_qps = 6.9"),
        ({"early_data": True, "resumption": False}, ""),
        ({"early_data": True, "transport": "dot"}, ""),
        ({"early_data": True, "transport": "doh", "doh_method": "get"}, ""),
        ({"early_data": True, "transport": "doh"}, "safe to repeat"),
        ({"early_data": True, "transport": "doq", "resumption": False}, "sessions that are resumed"),
        ({"proxy_protocol": True, "transport": "doh"}, ""),
        ({"proxy_protocol": True, "transport": "doq"}, "no client is announced over DoQ"),
        ({"transport": "doq"}, ""),
    ],
)
def test_options_that_load_would_refuse_are_refused_before(options: dict[str, Any], refused: str) -> None:
    if refused:
        with pytest.raises(UsageError, match=refused):
            load_arguments.check({**load_arguments.OPTIONS, **options})
    else:
        load_arguments.check({**load_arguments.OPTIONS, **options})


@pytest.mark.parametrize(
    ("rate_qps", "rounded"), [(-1.0, 0), (0.0, 0), (0.29, 0.29), (9.99, 9.9), (10, 10), (109, 100)]
)
def test_a_rate_is_rounded_down_to_two_digits(rate_qps: float, rounded: float) -> None:
    assert load_arguments.rounded_down(rate_qps) == pytest.approx(rounded)


@pytest.mark.parametrize(
    ("classes", "refused"),
    [
        ("", ""),
        ("share=100%", ""),
        ("share=1", ""),
        ("share=0.7,transport=dot; share=30%,reuse=no;", ""),
        ("; ".join(["share=1%"] * 15), ""),
        ("share=50%,transport=doq,early-data=yes,resumption=yes", ""),
        ("; ".join(["share=1%"] * 16), "there may be 15 classes"),
        ("share=0.7; share=30.1%", r"100.1 % of the clients together"),
        ("share=0", "above 0 and at most 100%"),
        ("share=101%", "above 0 and at most 100%"),
        ("share=x", "above 0 and at most 100%"),
        ("transport=dot", "needs a share"),
        ("share=1%,share=2%", "given twice"),
        ("share=1%,colour=red", "'colour' is not one of"),
        ("share=1%,reuse=maybe", "reuse is one of yes, no"),
        ("share=1%,early-data=yes,transport=tcp", "resumed session"),
        ("share=1%,early-data=yes,resumption=no", "resumed session"),
        ("share=1%,early-data=yes,transport=doh", "no early data over DoH"),
    ],
)
def test_classes_have_shares_of_all_clients(classes: str, refused: str) -> None:
    if refused:
        with pytest.raises(UsageError) as caught:
            client_classes.parse(classes)
        assert refused in caught.value.hint
    else:
        assert len(client_classes.parse(classes)) == len([one for one in classes.split(";") if one.strip()])
        is_early = "early-data=yes" in classes
        assert client_classes.asks_for(classes, "early-data") is is_early
        assert client_classes.asks_for(classes, "reuse", "early-data") is is_early


@pytest.mark.parametrize(
    ("overlay", "options", "work_s", "more_s"),
    [
        ({}, {}, 1 + 1, 0),
        ({"path": {"delay_ms": 10}, "link": "tun"}, {}, 1 + 1, 4),
        ({"hosts": {"secondary": {"server": "bind@forky"}}}, {"serve_as": "secondary"}, 1000 / 20, 0),
        ({"hosts": {"secondary": {"server": "nsd@forky"}}}, {"serve_as": "secondary"}, 1 + 1, 0),
    ],
    ids=["primary", "path", "limit of a server", "no limit"],
)
def test_the_estimate_is_of_two_rounds_of_the_slowest_work(
    overlay: dict[str, Any], options: dict[str, Any], work_s: float, more_s: float
) -> None:
    """1,000 zones and 100,000 records take a second each, and BIND asks for 20 zones a second."""
    made = spec(overlay, rate_qps=10, duration_s=5.0, warmup_s=2.0, **options)
    made.dataset.zones, made.dataset.records = 1000, 100_000
    found, around_s = estimate.of_trial(made), executor("running").OVERHEAD_S + more_s + 7
    assert found.expected_s == pytest.approx(around_s + min(2 * work_s, 60))
    assert found.at_most_s == pytest.approx(around_s + 2 * work_s + 60)
    both = estimate.of_run([made, made])
    assert (both.expected_s, both.at_most_s) == (2 * found.expected_s, 2 * found.at_most_s)
