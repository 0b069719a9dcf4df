"""Who was the bottleneck, in one line for all variants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import load_rows
import pytest
import synthetic
from test_packets import WHOLE

from dnsrig.report.bottleneck import sentence
from dnsrig.rundir import Finding
from dnsrig.runs import packets
from dnsrig.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(servers=["knot@system"], zones=[100])))


def asked(run: Run, monkeypatch: pytest.MonkeyPatch, server: float, generator: float) -> None:
    """Queries at a fixed rate, with these shares of the CPUs."""
    for trial in run.trials:
        load_rows.load(trial, load_rows.Asked(), load_rows.log_normal(0.2, 0.4))
    monkeypatch.setattr(
        "dnsrig.report.bottleneck.busy_share", lambda trial, host: server if host == trial.subject else generator
    )


def test_without_a_load_nothing_is_said(run: Run) -> None:
    assert sentence(run, []) == ""


@pytest.mark.parametrize(
    ("server", "words"),
    [(0.12, "none (server 12% busy, generator 5%)"), (0.97, "the server, busy for 97% of the time")],
)
def test_the_cpu_of_the_server_decides_at_a_fixed_rate(
    run: Run, monkeypatch: pytest.MonkeyPatch, server: float, words: str
) -> None:
    asked(run, monkeypatch, server, 0.05)
    assert sentence(run, []) == f"Bottleneck: {words}."


def test_a_generator_that_a_trap_blames_comes_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(run, monkeypatch, 0.97, 0.05)
    [variant] = run.manifest.variants
    blamed = Finding(trap="queries-sent-late", verdict="found", variant=variant.id, summary="late")
    assert sentence(run, [blamed]) == "Bottleneck: the generator."


def test_the_place_that_lost_most_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(run, monkeypatch, 0.12, 0.05)
    counts = replace(WHOLE, returned_by_interface_packets=980, returned=980)
    monkeypatch.setattr(packets, "counts", lambda trial: counts)
    assert sentence(run, []) == "Bottleneck: the wire: 2 % were lost between the interfaces, on the way back."


@pytest.mark.parametrize(
    ("holds", "words"), [(False, "the server"), (True, "not found: even the highest rate of the search held")]
)
def test_a_search_that_found_no_limit_names_none(run: Run, holds: bool, words: str) -> None:
    for trial in run.trials:
        load_rows.ramp(trial, [{"rate_qps": 10_000, "holds": holds}], 10_000)
        trial.record.instruments["load"]["capacity_is_lower_bound"] = holds
    assert sentence(run, []) == f"Bottleneck: {words}."


def test_variants_with_the_same_bottleneck_are_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = ["knot@system", "bind@system", "nsd@system"]
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(servers=servers, zones=[100])))
    first, *_ = run.manifest.variants
    asked(run, monkeypatch, 0.97, 0.05)
    assert sentence(run, []) == "Bottleneck of all: the server, busy for 97% of the time."
    monkeypatch.setattr(
        "dnsrig.report.bottleneck.busy_share",
        lambda trial, host: 0.05 if host != trial.subject else 0.1 if trial.key.variant == first.id else 0.97,
    )
    assert sentence(run, []) == (
        "Bottleneck: Knot DNS: none (server 10% busy, generator 5%); BIND 9 and NSD: the server, busy for 97% of the time."
    )


def test_many_variants_with_the_same_bottleneck_make_one_short_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = synthetic.Plan(servers=["knot@system", "bind@system"], zones=[100, 200, 300])
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    asked(run, monkeypatch, 0.1, 0.05)
    last = run.manifest.variants[-1].id
    shares = {variant.id: 0.1 + index / 100 for index, variant in enumerate(run.manifest.variants)}
    shares[last] = 0.95
    monkeypatch.setattr(
        "dnsrig.report.bottleneck.busy_share",
        lambda trial, host: 0.05 if host != trial.subject else shares[trial.key.variant],
    )
    line = sentence(run, [])
    assert line.startswith("Bottleneck: 5 variants: none (server 10 to 14% busy, generator 5%); ")
    assert line.endswith(": the server, busy for 95% of the time.") and "BIND 9" in line


@pytest.mark.parametrize(
    ("share", "words"), [(0.899, "none (server 90% busy, generator 5%)"), (0.9, "the server, busy for 90% of the time")]
)
def test_a_server_is_the_bottleneck_from_nine_tenths_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, share: float, words: str
) -> None:
    asked(run, monkeypatch, share, 0.05)
    assert sentence(run, []) == f"Bottleneck: {words}."


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (1000, "none (server 12% busy, generator 5%)"),
        (999, "the wire: 0.1 % were lost between the interfaces, on the way back"),
    ],
)
def test_one_in_a_thousand_lost_is_the_bottleneck(
    run: Run, monkeypatch: pytest.MonkeyPatch, returned: int, words: str
) -> None:
    asked(run, monkeypatch, 0.12, 0.05)
    counts = replace(WHOLE, returned_by_interface_packets=returned, returned=returned)
    monkeypatch.setattr(packets, "counts", lambda trial: counts)
    assert sentence(run, []) == f"Bottleneck: {words}."


@pytest.mark.parametrize(
    ("servers", "line"),
    [
        (2, "Bottleneck of all: the server, busy for 97% of the time."),
        (
            4,
            "Bottleneck: a: none (server 10% busy, generator 5%); b and c and d: the server, busy for 97% of the time.",
        ),
        (5, "Bottleneck: a: none (server 10% busy, generator 5%); 4 variants: the server, busy for 97% of the time."),
    ],
)
def test_up_to_three_variants_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: int, line: str
) -> None:
    plan = synthetic.Plan(
        servers=["knot@system"], zones=[100], extra_axes={"way": list("abcde")[:servers]}, baseline={}
    )
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    asked(run, monkeypatch, 0.97, 0.05)
    idle = {run.manifest.variants[0].id} if servers > 2 else set()
    monkeypatch.setattr(
        "dnsrig.report.bottleneck.busy_share",
        lambda trial, host: 0.05 if host != trial.subject else 0.1 if trial.key.variant in idle else 0.97,
    )
    assert sentence(run, []).replace("way ", "") == line
