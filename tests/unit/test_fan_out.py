"""Procedure fan-out: addresses, arguments, how a change spread, and verdicts. No server, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_serving import FakeContext
from transfer_load_data import summary
from trial_data import SECOND, clean_trial

from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.metrics import all_metrics
from dnsrig.procedures import fan_out
from dnsrig.procedures.context import placing
from dnsrig.rundir import HostSpec, TrialSpec
from dnsrig.runs import transfers as spreading
from dnsrig.runs.row_files.transfer import TRANSFERS
from dnsrig.runs.trial import Trial

MS = 1_000_000
START = 5_000 * SECOND


def made(*settings: str) -> TrialSpec:
    document = model.load(model.find("fan-out"), "standard", ["limits=raised", "by=AXFR", *settings])
    (point,) = model.points(document)
    return trial_specs.provisional("fan-out", point, [0, 1])


def test_each_secondary_has_an_address_to_which_notify_goes() -> None:
    spec = made("server=bind@forky", "secondaries=1000")
    client = spec.hosts["client"]
    assert len(set(client.source_addresses)) == 1000
    assert [str(address) for address in placing.secondaries(spec)] == client.source_addresses


def test_a_change_of_which_nobody_is_told_is_refused() -> None:
    with pytest.raises(UsageError, match="NOTIFY"):
        made("server=bind@forky", "secondaries=1", "transfer.notify=false")
    with pytest.raises(UsageError, match=r"options\.secondaries"):
        made("server=bind@forky", "secondaries=1001")


def row(secondary: int, asked_ms: int, last_ms: int, **changes: Any) -> dict[str, Any]:
    """An attempt, with times in ms after the change."""
    whole = dict.fromkeys(TRANSFERS.schema, 0) | {"zone": "z.example", "asked": "axfr", "answered": "axfr"}
    whole |= {"secondary": secondary, "serial": 2, "outcome": "done"}
    return whole | {"asked_ns": START + asked_ms * MS, "last_ns": START + last_ms * MS} | changes


def rows(*each: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(each), schema=TRANSFERS.schema)


def spread(frame: pl.DataFrame, zones: int = 1) -> spreading.Spread:
    return spreading.spread(frame, zones=zones, serial=2, since_ns=START)


def test_only_the_new_version_counts() -> None:
    seen = spread(
        rows(
            row(0, -50, 20, serial=1),
            row(0, 30, 90),
            row(1, 10, 12, outcome="servfail", serial=0),
            row(1, 1010, 1050, serial=3),
            row(2, 20, 25, serial=1),
            row(3, 22, 23, asked="soa"),
        )
    )
    assert seen.zero_ns == START + 10 * MS
    assert [(when - START) // MS for when in seen.arrived_ns] == [90, 1050]
    assert seen.failures == {"servfail": 1}


def test_serials_go_round() -> None:
    frame = rows(row(0, 1, 2, serial=3), row(1, 1, 2, serial=2**32 - 2))
    seen = spreading.spread(frame, zones=1, serial=2**32 - 1, since_ns=START)
    assert len(seen.arrived_ns) == 1


def test_a_secondary_has_the_change_with_its_last_zone() -> None:
    seen = spread(rows(row(0, 1, 5), row(0, 2, 9, zone="y.example"), row(1, 1, 3)), zones=2)
    assert [(when - START) // MS for when in seen.arrived_ns] == [9]


def test_nothing_came() -> None:
    seen = spread(rows())
    assert (seen.zero_ns, seen.asked_ns, seen.arrived_ns) == (None, [], [])


TWO = spread(rows(row(0, 1, 5), row(1, 1, 3), row(2, 2, 4, outcome="servfail")))


@pytest.mark.parametrize(
    ("seen", "told", "secondaries", "outcome", "words"),
    [
        (TWO, summary(2), 2, "done", ""),
        (TWO, summary(2), 3, "timeout", "2 of 3 secondaries after 30 s; attempts that failed: 1 servfail"),
        (spread(rows()), summary(0), 3, "timeout", "no NOTIFY came within 30 s"),
        (TWO, summary(2, rows_lost=4), 3, "invalid", "lost 4 rows"),
    ],
)
def test_how_a_trial_is_concluded(
    seen: spreading.Spread, told: dict[str, Any], secondaries: int, outcome: str, words: str
) -> None:
    result = fan_out.concluded(seen, told, secondaries=secondaries, limit_s=30)
    assert result.outcome == outcome and words in result.reason


def fan_out_trial(folder: Path, *each: Mapping[str, Any], secondaries: int) -> Trial:
    trial = clean_trial(folder)
    spec, phase = trial.record.spec, trial.measure
    assert phase is not None
    spec.procedure, spec.main_metric, spec.options = "fan-out", "last_done_s", {"secondaries": secondaries}
    spec.hosts["client"] = HostSpec(address="198.18.0.4", cpus=[0], notified=True)
    spec.next_dataset = spec.dataset.model_copy(update={"serial": 2})
    spec.dataset.zones = 1
    phase.start.monotonic_ns = START
    trial.record.instruments["transfer"] = summary(len(each))
    trial.__dict__["transfers"] = rows(*each)
    return trial


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


def test_metrics_count_from_the_first_notify(tmp_path: Path) -> None:
    each = [row(0, 500, 600), row(1, 510, 700), row(2, 900, 1500)]
    trial = fan_out_trial(tmp_path / "run", *each, secondaries=3)
    names = ("last_done_s", "half_done_s", "first_done_s", "notify_spread_s", "change_to_notify_s")
    assert [value(name, trial) for name in names] == [1.0, 0.2, 0.1, 0.4, 0.5]
    assert (value("secondaries_done", trial), value("secondaries_per_s", trial)) == (3, 3)


def test_a_secondary_without_the_change_leaves_no_last_one(tmp_path: Path) -> None:
    trial = fan_out_trial(tmp_path / "run", row(0, 500, 600), row(1, 510, 700), secondaries=3)
    assert (value("last_done_s", trial), value("half_done_s", trial)) == (None, None)
    assert (value("first_done_s", trial), value("secondaries_done", trial)) == (0.1, 2)
    trial.record.outcome = "timeout"
    assert all_metrics()["secondaries_done"].counts(trial) and not all_metrics()["last_done_s"].counts(trial)


TIMES = ("last_done_s", "half_done_s", "first_done_s", "notify_spread_s", "change_to_notify_s", "secondaries_per_s")


def test_a_change_without_a_notify_has_no_times(tmp_path: Path) -> None:
    trial = fan_out_trial(tmp_path / "run", secondaries=3)
    assert [value(name, trial) for name in TIMES] == [None] * len(TIMES)
    assert value("secondaries_done", trial) == 0


def test_one_secondary_has_no_rate_and_two_have_one(tmp_path: Path) -> None:
    one = fan_out_trial(tmp_path / "one", row(0, 500, 600), secondaries=1)
    assert (value("secondaries_per_s", one), value("last_done_s", one)) == (None, 0.1)
    two = fan_out_trial(tmp_path / "two", row(0, 500, 600), row(1, 510, 700), secondaries=2)
    assert (value("secondaries_per_s", two), value("last_done_s", two)) == (10, 0.2)


def test_other_trials_have_none_of_it(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    assert value("last_done_s", trial) is None and value("secondaries_done", trial) is None


class Spreading(FakeContext):
    """A context on which the instrument says `ready`, then how far it is."""

    def __init__(self, spec: TrialSpec, directory: Path, done: list[int]) -> None:
        super().__init__(spec, directory)
        self.counts = iter(done)

    def start_transfer(self, name: str, host: str, target: str, arguments: list[str]) -> Any:
        self.done.append(f"{name} on {host}")
        self.arguments[name] = arguments
        return name

    def lay_out(self, name: str) -> None:
        self.done.append("lay out")

    def load(self, name: str) -> None:
        self.done.append("change")

    def wait(self, name: str, *, limit_s: float, until: str = "summary") -> Any:
        self.done.append(until)
        return {"event": until, "done": next(self.counts)} if until == "progress" else {"event": until}

    def report(self, event: Mapping[str, Any]) -> None: ...


@pytest.mark.parametrize(("server", "tells"), [("nsd@forky", True), ("zones@engine", False)])
def test_order_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, tells: bool) -> None:
    spec = made(f"server={server}", "secondaries=10", "options.settle_s=0.0", "options.drain_s=0.0")
    # Two were done before the change: of the version that a primary notifies of when it starts.
    context = Spreading(spec, tmp_path, [2, 5, 12])
    monkeypatch.setattr(fan_out, "_concluded", lambda context: None)
    fan_out.measure(context)  # type: ignore[arg-type]
    change = ["lay out"], ["change"]
    if not tells:
        change = [], []
    setup = ["setup", "ready primary", *change[0], "warmup", "transfer on client", "ready", "progress"]
    assert context.done == [*setup, "measure", *change[1], "progress", "progress", "drain", "stop transfer"]
    assert {"--on-notify", "--serial=0"} <= set(context.arguments["transfer"])
