from __future__ import annotations

import pytest
from made_up import made_up_findings

from dnsrig.report.gather import _sorted, _where, gather, together
from dnsrig.rundir import Finding, Scalar
from dnsrig.runs.run import Run


def test_found_comes_first_then_unsure_then_clear(run: Run) -> None:
    assert [report.id for report in gather(run, made_up_findings(run))] == [
        "ports-exhausted",
        "cold-cache",
        "clock-step",
    ]


def test_repeats_are_one_entry_with_their_range(run: Run) -> None:
    entry = gather(run, made_up_findings(run))[0].found[0]
    assert entry.where == "in 5 of 5 repeats"
    assert entry.example == 1
    assert entry.evidence == {"first_failure_s": [31, 32, 33, 34, 35], "ports": [28_232] * 5}


def test_a_trap_that_found_something_is_not_clear(run: Run) -> None:
    variant = run.manifest.variants[0].id
    mixed = [
        Finding(trap="t", verdict="clear", variant=variant, repeat=1, summary=""),
        Finding(trap="t", verdict="found", variant=variant, repeat=2, summary="it was"),
    ]
    report = gather(run, mixed)[0]
    assert not report.is_clear
    assert report.found[0].where == "in 1 of 5 repeats"
    assert report.concerns(variant)
    assert not report.concerns(None)


def test_a_finding_about_the_run_names_the_run(run: Run) -> None:
    report = gather(run, [Finding(trap="t", verdict="found", summary="all of it")])[0]
    assert report.found[0].subject == "the whole run"
    assert report.found[0].where == ""
    assert report.concerns(None)


def test_variants_that_differ_in_figures_alone_are_one_entry(run: Run) -> None:
    said = ("full after 3 s", "full after 41.5 s", "not full")
    findings = [
        Finding(trap="ports-exhausted", verdict="found", variant=v.id, repeat=1, summary=words, evidence={"s": number})
        for number, (v, words) in enumerate(zip(run.manifest.variants, said, strict=False))
    ]
    (report,) = gather(run, findings)
    alike, alone = report.found_alike
    assert [entry.summary for entry in alike] == ["full after 3 s", "full after 41.5 s"]
    assert [entry.summary for entry in alone] == ["not full"]
    assert together(alike).evidence == {"s": [0, 1]}


@pytest.mark.parametrize(
    ("repeats", "measured", "where"),
    [(0, 5, ""), (1, 1, "in the only repeat"), (1, 5, "in 1 of 5 repeats"), (5, 5, "in 5 of 5 repeats")],
)
def test_an_entry_states_in_how_many_repeats(repeats: int, measured: int, where: str) -> None:
    assert _where(repeats, measured) == where


@pytest.mark.parametrize(
    ("values", "shown"), [([3, None, 1, ""], [1, 3]), (["b", "a"], ["b"]), (["", None], []), ([2, "a"], [2])]
)
def test_numbers_of_the_evidence_are_sorted_and_of_texts_the_first_is_kept(
    values: list[Scalar | None], shown: list[Scalar]
) -> None:
    assert _sorted(values) == shown
