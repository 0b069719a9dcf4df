"""Procedure cycle: generations of a zone, what is refused, what was seen of them, and its trap. No server, no clock."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import synthetic
from trial_data import SECOND, clean_trial, judge, measured, series, use

from dnsrig import datasets
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.metrics import all_metrics
from dnsrig.procedures import cycle, procedure, versions
from dnsrig.rundir import TrialSpec
from dnsrig.runs import replication
from dnsrig.runs.trial import Trial

ZONE = (
    "$ORIGIN example.\n$TTL 86400\n@\tIN SOA a.nic hostmaster.nic 1 3600 900 1209600 300\n"
    "\t86400 IN RRSIG SOA 13 1 86400 20450101000000 20250101000000 41446 example. Mtx0==\n"
)


def made(*settings: str) -> TrialSpec:
    narrow = ("server=knot@forky", "congestion=cubic", "changed_percent=12.0")
    (point,) = model.points(model.load(model.find("generation-cycle"), "quick", [*narrow, *settings]))
    return trial_specs.provisional("generation-cycle", point, [0, 1])


def test_a_generation_has_a_serial_of_its_own(tmp_path: Path) -> None:
    source, target = tmp_path / "example.zone", tmp_path / "example.zone.next"
    source.write_text(ZONE + "x" * 10_000)
    cycle.copy_with_serial(source, target, 17)
    assert target.read_text() == ZONE.replace("hostmaster.nic 1 3600", "hostmaster.nic 17 3600") + "x" * 10_000
    source.write_text("; no zone\n")
    with pytest.raises(DnsrigError, match="has no SOA record"):
        cycle.copy_with_serial(source, target, 17)


def test_the_share_of_the_zone_that_changes() -> None:
    values = datasets.parameters("tld", {"delegations": 1000})
    base, following = versions(procedure("cycle"), values, {**cycle.OPTIONS, "changed_percent": 10.0})
    assert base == values and following == {**values, "serial": 2, "records_changed": 545}
    _, least = versions(procedure("cycle"), values, {**cycle.OPTIONS, "changed_percent": 0.001})
    assert least["records_changed"] == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("transfer.notify=false",), "follows generations by NOTIFY and IXFR"),
        (("transfer.ixfr=false",), "follows generations by NOTIFY and IXFR"),
        (("options.generations=100",), "100 generations of 5 s do not fit within limit_s = 90 s"),
        (("options.generations=0",), r"options\.generations = 0"),
        (("options.cycle_s=0.1",), r"options\.cycle_s = 0\.1"),
        (("options.changed_percent=56.0",), r"options\.changed_percent = 56"),
    ],
)
def test_what_cannot_be_measured_is_refused(settings: tuple[str, ...], words: str) -> None:
    settings = tuple(name.replace("options.changed_percent", "changed_percent") for name in settings)
    with pytest.raises(UsageError, match=words):
        made(*settings)


def test_the_path_lies_between_the_sites() -> None:
    spec = made()
    assert [link.ends for link in spec.links if link.emulated] == [("primary", "secondary")]
    spec.dataset.kind = "tiny-zones"
    with pytest.raises(UsageError, match="only in its serial"):
        cycle.validate(spec)


def generation(
    number: int, published_s: float | None, served_s: float | None, serial: int | None = None
) -> dict[str, Any]:
    """As the procedure tells of one; times since `measure` began, put to the clock by `followed`."""
    return {
        "serial": 1 + number,
        "told_ns": round((published_s or 0) * SECOND) - SECOND // 10,
        "published_ns": None if published_s is None else round(published_s * SECOND),
        "published_serial": None if published_s is None else 1 + number,
        "served_ns": None if served_s is None else round(served_s * SECOND),
        "served_last_unseen_ns": None,
        "served_serial": None if served_s is None else serial or 1 + number,
    }


def followed(trial: Trial, *told: dict[str, Any], cycle_s: float = 10.0, outcome: str = "done") -> Trial:
    """Let a secondary have followed: 1,000 bytes for the whole zone before `measure`, then 100 a second."""
    begin_ns = measured(trial, 40)
    for each in told:
        for name in ("told_ns", "published_ns", "served_ns"):
            each[name] = None if each[name] is None else each[name] + begin_ns
    trial.record.spec.procedure, trial.record.spec.main_metric = "cycle", cycle.MAIN_METRIC
    trial.record.spec.options = {**cycle.OPTIONS, "cycle_s": cycle_s}
    trial.record.instruments["cycle"] = {"event": "summary", "generations": list(told)}
    trial.record.outcome = outcome  # type: ignore[assignment]
    nbytes = [5000, *[6000 + 100 * second for second in range(42)]]
    use(trial, series(begin_ns - SECOND, secondary__link_primary__rx_bytes=nbytes))
    trial.record.metrics = {}
    return trial


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


def values(trial: Trial, *names: str) -> list[float | None]:
    return [trial.metrics[name] for name in names]


def test_generations_that_fit(trial: Trial) -> None:
    followed(trial, generation(1, 0.5, 1.5), generation(2, 10.5, 14.5))
    assert values(trial, "cycle_share_percent", "generation_max_s", "generation_p50_s") == [40, 4, 2.5]
    assert values(trial, "generations_late", "generations_skipped") == [0, 0]
    assert trial.metrics["publication_max_s"] == pytest.approx(0.1)
    assert judge("cycle-too-short", trial).verdict == "clear"


def test_generations_that_do_not(trial: Trial) -> None:
    """The second arrives with the third, after longer than a cycle."""
    followed(trial, generation(1, 0, 9), generation(2, 10, 26, serial=4), generation(3, 20, 26, serial=4))
    assert values(trial, "cycle_share_percent", "generations_late", "generations_skipped") == [160, 1, 1]
    found = judge("cycle-too-short", trial)
    assert found.verdict == "found"
    assert (found.evidence["transfer_s"], found.evidence["at_limit"]) == (16, False)


def test_a_generation_that_never_came(trial: Trial) -> None:
    followed(trial, generation(1, 0, 9), generation(2, 10, None), outcome="timeout")
    assert values(trial, "cycle_share_percent", "generations_late") == [None, 1]
    found = judge("cycle-too-short", trial)
    assert found.verdict == "found" and (found.evidence["transfer_s"], found.evidence["at_limit"]) == (30, True)
    followed(trial, generation(1, 0, 9), generation(2, 10, None), cycle_s=31, outcome="timeout")
    assert judge("cycle-too-short", trial).verdict == "cannot-tell"


def test_bytes_between_two_serials(trial: Trial) -> None:
    followed(trial, generation(1, 0, 2), generation(2, 10, 26.5, serial=4), generation(3, 20, 26.5, serial=4))
    assert replication.whole_bytes(trial) == 1000
    first, second = replication.arrivals(trial)
    assert (first.serial, first.generations, first.nbytes, first.whole) == (2, 1, 200, False)
    assert (second.serial, second.generations, second.nbytes, second.whole) == (4, 2, 2450, True)
    assert values(trial, "generations_whole", "generation_bytes_percent") == [1, pytest.approx(132.5)]


@pytest.mark.parametrize(("served_s", "whole"), [(8.5, False), (9.5, True)])
def test_nine_tenths_of_the_whole_zone_are_the_whole(trial: Trial, served_s: float, whole: bool) -> None:
    followed(trial, generation(1, 0, served_s))
    (arrival,) = replication.arrivals(trial)
    assert arrival.share == pytest.approx(served_s / 10) and arrival.whole is whole


def test_a_serial_arrived_when_it_was_first_seen(trial: Trial) -> None:
    """Generations that were skipped are told when the one that was served is."""
    followed(trial, generation(1, 0, 3, serial=3), generation(2, 1, 5, serial=3))
    (arrival,) = replication.arrivals(trial)
    assert (arrival.generations, arrival.nbytes) == (2, 300)


def test_without_samples_there_are_no_bytes(trial: Trial) -> None:
    followed(trial, generation(1, 0, 2))
    use(trial, series(0))
    assert replication.arrivals(trial) == [] and replication.whole_bytes(trial) is None


def test_other_procedures_have_no_generations(trial: Trial) -> None:
    names = ("cycle_share_percent", "generations_late", "generations_skipped", "generations_whole", "publication_max_s")
    assert [all_metrics()[name].compute(trial) for name in names] == [None] * len(names)


def test_how_a_trial_ends() -> None:
    both = [generation(1, 0, 9), generation(2, 10, 19)]
    assert cycle.concluded(both, cycle_s=10, limit_s=90).outcome == "done"
    late = cycle.concluded([both[0], generation(2, 10, None)], cycle_s=10, limit_s=90)
    assert (late.outcome, late.reason) == ("timeout", "the secondary had 1 of 2 generations after 90 s")
    unpublished = cycle.concluded([both[0], generation(2, None, None)], cycle_s=10, limit_s=90)
    assert "the primary had 1 of 2" in unpublished.reason


def test_a_cycle_that_the_rig_did_not_keep() -> None:
    made = [generation(1, 0, 9), generation(2, 12, 19)]
    found = cycle.concluded(made, cycle_s=10, limit_s=90)
    assert found.outcome == "invalid" and "2 s later than its cycle of 10 s" in found.reason
    assert cycle.concluded([made[0], generation(2, 10.9, 19)], cycle_s=10, limit_s=90).outcome == "done"


def test_a_large_zone_does_not_shorten_the_first_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file takes 3 s to be written; each generation is made when it is due all the same."""
    now_s, laid_out = [100.0], []

    def pass_by(seconds: float) -> None:
        now_s[0] += max(0.0, seconds)

    def lay_out(_: Any, __: str, number: int) -> None:
        pass_by(3)
        laid_out.append(number)

    clock = SimpleNamespace(monotonic=lambda: now_s[0], monotonic_ns=lambda: round(now_s[0] * SECOND))
    monkeypatch.setattr(cycle, "time", clock)
    monkeypatch.setattr(cycle, "lay_out", lay_out)
    monkeypatch.setattr(cycle, "_watch", lambda *_: None)
    options = {"cycle_s": 10.0, "generations": 3}
    told: list[list[int]] = []
    context = SimpleNamespace(
        option=options.get, rest=pass_by, changes=SimpleNamespace(load=lambda _: told.append(list(laid_out)))
    )
    made = cycle._make(context, deadline_s=200)  # type: ignore[arg-type]
    first_ns = made[1]
    assert [made_ns - first_ns for made_ns in made.values()] == [0, 10 * SECOND, 20 * SECOND]
    assert told == [[1], [1, 2], [1, 2, 3]], (
        "each is laid out before the primary is told of it, and none beyond the last"
    )


@pytest.mark.parametrize(
    ("seen_ns", "last_unseen_ns", "expected"),
    [(7, 5, cycle.Served(7, 5, 3)), (None, 5, cycle.Served(None, 5, None)), (7, None, cycle.Served(7, None, 3))],
)
def test_what_was_served_is_in_the_row_of_probe(
    tmp_path: Path, seen_ns: int | None, last_unseen_ns: int | None, expected: cycle.Served
) -> None:
    """The serial is the one that was seen, or nothing was served."""
    row = {"seen_ns": [seen_ns], "last_unseen_ns": [last_unseen_ns], "serial": [3]}
    pl.DataFrame(row, schema=dict.fromkeys(row, pl.Int64)).write_ipc_stream(tmp_path / "rows")
    assert cycle._served(tmp_path / "rows") == expected


def test_without_rows_nothing_was_served(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert cycle._served(tmp_path / "missing") == cycle._served(tmp_path / "empty") == cycle.Served(None, None, None)
