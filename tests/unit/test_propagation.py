"""Dynamic updates in configurations, the procedures that change and restart, and what their summaries come to."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import synthetic
from test_servers import KEYS, configuration, placement
from trial_data import SECOND, clean_trial

from dnsrig import procedures
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.metrics import all_metrics
from dnsrig.procedures import propagation, startup, zone_load
from dnsrig.report.charts import percentiles
from dnsrig.rundir import TransferSpec
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers, keys
from dnsrig.servers.driver import wanted_features

UPDATED = sorted(kind for kind, server in all_drivers().items() if server.support("dynamic updates").primary)
SAYS_UPDATES = {"bind": "allow-update", "knot": "action: update", "powerdns": "dnsupdate=yes"}


@pytest.mark.parametrize("kind", UPDATED)
def test_a_primary_takes_updates_only_where_wanted(tmp_path: Path, kind: str) -> None:
    plain = configuration(placement(tmp_path / "a", kind, "primary"))
    updated = configuration(placement(tmp_path / "b", kind, "primary", transfer=TransferSpec(updates=True)))
    secondary = configuration(placement(tmp_path / "c", kind, "secondary", transfer=TransferSpec(updates=True)))
    words = SAYS_UPDATES[kind]
    assert words in updated
    assert words not in plain and words not in secondary


@pytest.mark.parametrize("kind", UPDATED)
def test_updates_are_signed_where_transfers_are(tmp_path: Path, kind: str) -> None:
    signed = TransferSpec(transport="tcp+tsig", updates=True)
    text = configuration(placement(tmp_path, kind, "primary", transfer=signed))
    said = {
        "bind": f'allow-update {{ key "{keys.TSIG_NAME}"; }}',
        "knot": f"action: update\n    key: {keys.TSIG_NAME}",
        "powerdns": f"TSIG-ALLOW-DNSUPDATE', '{keys.TSIG_NAME}'",
    }
    assert said[kind] in text and KEYS.tsig_secret in text


def test_only_a_primary_must_know_updates() -> None:
    transfer = TransferSpec(updates=True)
    assert wanted_features(transfer, several_sources=False, role="primary") == ["dynamic updates"]
    assert wanted_features(transfer, several_sources=False, role="secondary") == []
    assert wanted_features(TransferSpec(), several_sources=False, role="primary") == []


def points(*settings: str) -> list[model.Point]:
    return model.points(model.load(model.find("propagation"), "quick", list(settings)))


def test_a_primary_without_updates_is_refused() -> None:
    with pytest.raises(UsageError, match=r"NSD as primary .* has no dynamic updates"):
        for point in points("hosts.primary.server=nsd@forky"):
            trial_specs.provisional("propagation", point, [0, 1])


def test_a_primary_that_changes_by_itself_does_so_at_a_rate() -> None:
    itself = ["hosts.primary.server=zones@engine", "transfer.updates=false"]
    (single,) = points("server=bind@forky", "secondaries=1", "changes=single", "baseline={}", *itself)
    with pytest.raises(UsageError, match="itself, at a fixed rate"):
        trial_specs.provisional("test", single, [0, 1])


def test_secondaries_are_like_the_first_and_linked_to_all_who_ask() -> None:
    roles = procedures.hosts(propagation, {**propagation.OPTIONS, "secondaries": 3})
    assert list(roles) == ["primary", "secondary", "secondary2", "secondary3", "observer"]
    assert [name for name, role in roles.items() if role.under_test] == ["secondary"]
    assert {roles[name].inherits for name in ("secondary2", "secondary3")} == {"secondary"}
    links = procedures.links(propagation, roles)
    assert len(set(links)) == len(links) == 3 + 1 + 3
    made = [
        trial_specs.provisional("propagation", point, [0, 1]) for point in points("secondaries=3", "server=knot@forky")
    ]
    assert all(spec.hosts["secondary3"].server == spec.hosts["secondary"].server for spec in made)
    assert {spec.dataset.parameters["refresh_s"] for spec in made} == {2, 3600}


@pytest.mark.parametrize("wrong", [{"secondaries": 0}, {"secondaries": 17}, {"mode": "often"}])
def test_options_out_of_bounds_are_refused(wrong: dict[str, int | str]) -> None:
    with pytest.raises(UsageError):
        procedures.options_of(propagation, wrong)


SUMMARY = {"outcome": "done", "refused": 0, "accept_timeouts": 0, "rcodes": {"NOERROR": 4}, "changes": 4, "wanted": 4}


@pytest.mark.parametrize(
    ("said", "outcome", "words"),
    [
        ({"seen": 8, "unseen": 0}, "done", ""),
        ({"seen": 6, "unseen": 2, "outcome": "timeout"}, "timeout", "2 of 8 arrivals were not seen within 20 s"),
        ({"seen": 6, "unseen": 0, "changes": 3, "outcome": "timeout"}, "timeout", "only 3 of 4 changes were made"),
        ({"seen": 6, "unseen": 0, "refused": 1, "rcodes": {"NOERROR": 3, "REFUSED": 1}}, "invalid", "1 REFUSED"),
        ({"seen": 6, "unseen": 0, "accept_timeouts": 1, "rcodes": {"NOERROR": 3}}, "invalid", "no answer"),
    ],
)
def test_how_a_trial_is_concluded(said: dict[str, object], outcome: str, words: str) -> None:
    result = propagation.concluded({**SUMMARY, "limit_ns": 20 * SECOND, **said})
    assert result.outcome == outcome and words in result.reason


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


def test_metrics_are_those_of_the_summary(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    assert value("propagation_p50_ms", trial) is None and value("unseen_changes_percent", trial) is None
    spread = {"mean": 14_000_000, "p50": 12_500_000, "p99": 40_000_000, "max": 41_000_000}
    names = ("propagation_ns", "last_ns", "from_acceptance_ns", "accept_ns", "lag_ns", "resolution_ns")
    # No two figures are the same: each next spread is 100 ms later.
    spreads = {
        name: {figure: ns + number * 100_000_000 for figure, ns in spread.items()} for number, name in enumerate(names)
    }
    trial.record.instruments["propagation"] = {"seen": 9, "unseen": 1, **spreads}
    expected = {
        "propagation_p50_ms": 12.5,
        "propagation_mean_ms": 14,
        "propagation_p99_ms": 40,
        "propagation_max_ms": 41,
        "propagation_last_p50_ms": 112.5,
        "propagation_after_acceptance_p50_ms": 212.5,
        "update_accepted_p50_ms": 312.5,
        "change_lag_max_ms": 441,
        "propagation_resolution_p50_ms": 512.5,
        "propagation_resolution_max_ms": 541,
        "unseen_changes_percent": 10,
    }
    assert {name: value(name, trial) for name in expected} == expected


def test_a_restarted_secondary_is_no_cold_start(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    trial.record.instruments["probe"] |= {"last_seen_ns": synthetic.EXEC_NS + 3 * SECOND, "seen": 100}
    assert (value("startup_time_s", trial), value("transfer_time_s", trial)) == (None, 3)
    trial.record.spec.main_metric = "startup_time_s"
    assert (value("startup_time_s", trial), value("transfer_time_s", trial)) == (3, None)
    trial.record.outcome = "timeout"
    assert value("startup_time_s", trial) is None


def test_start_up_has_a_primary_of_its_own_only_for_a_secondary() -> None:
    alone = procedures.hosts(startup, startup.OPTIONS)
    assert {name: role.role for name, role in alone.items()} == {"server": "primary", "observer": None}
    assert procedures.links(startup, alone) == [("observer", "server")]
    both = procedures.hosts(startup, {**startup.OPTIONS, "as": "secondary"})
    assert {name: role.role for name, role in both.items()} == {
        "primary": "primary",
        "server": "secondary",
        "observer": None,
    }
    assert len(procedures.links(startup, both)) == 3
    for wrong in ({"as": "resolver"}, {"page_cache": "lukewarm"}):
        with pytest.raises(UsageError):
            procedures.options_of(startup, wrong)
    with pytest.raises(UsageError):
        procedures.options_of(zone_load, {"page_cache": "lukewarm"})


def test_the_chart_counts_what_did_not_arrive(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    ms = 1_000_000
    columns = {
        "rcode": [0, 0, None, 5, 0],
        "changed_ns": [0, 10 * ms, 20 * ms, 30 * ms, 40 * ms],
        "seen_ns": [4 * ms, 12 * ms, 23 * ms, None, None],
    }
    trial.__dict__["propagation"] = pl.DataFrame(columns)
    assert percentiles.of_changes(trial).points() == [(25.0, 2.0), (50.0, 3.0), (75.0, 4.0)]
    trial.__dict__["propagation"] = pl.DataFrame({name: [0] * 1_000 for name in columns})
    assert len(percentiles.of_changes(trial).points()) <= percentiles.MOST_POINTS + 2
    assert percentiles.of_changes(trial).points()[-1][0] == 100
