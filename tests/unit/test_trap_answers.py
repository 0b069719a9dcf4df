"""Traps of answers: two servers that differ, and RRsets that differ from the zone files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trial_data import clean_trial, judge

from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps
from dnsrig.traps.rrsets_lost import verdict


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run")


def compared(trial: Trial, different: int, **more: Any) -> Trial:
    """A thousand queries to two servers."""
    examples = [{"query": f"q{number} A", "answers": ["1.1.1.1", "none"]} for number in range(min(different, 100))]
    kinds = {"rcode": different - 1, "ttl": 1, "flags": 0} if different else {}
    summary = {"queries": 1_000, "different": different, "unanswered": 0, "differences": kinds, "examples": examples}
    trial.record.instruments["compare-answers"] = summary | more
    return trial


@pytest.mark.parametrize(
    ("different", "end"),
    [
        (2, "q0 A: 1.1.1.1 | none; q1 A: 1.1.1.1 | none."),
        (3, "q2 A: 1.1.1.1 | none."),
        (4, "q2 A: 1.1.1.1 | none, and 1 more."),
        (1_000, "q2 A: 1.1.1.1 | none, and 997 more."),
    ],
)
def test_three_of_the_answers_that_differ_are_named(trial: Trial, different: int, end: str) -> None:
    found = judge("answers-differ", compared(trial, different))
    assert found.verdict == "found" and found.summary.endswith(end)
    assert found.evidence == {"queries": 1_000, "different": different, "rcode": different - 1, "ttl": 1}
    assert f"{different - 1:,} with another rcode, 1 with another TTL" in found.summary


@pytest.mark.parametrize(
    ("more", "expected", "words"),
    [
        ({}, "clear", ""),
        ({"unanswered": 1}, "cannot-tell", "neither server answered 1 of 1,000 queries"),
        ({"rcodes": {"REFUSED": 10, "NOERROR": 990}}, "clear", ""),
        ({"rcodes": {"REFUSED": 9, "SERVFAIL": 2}}, "cannot-tell", "9 with REFUSED, 2 with SERVFAIL"),
        ({"rcodes": {"NXDOMAIN": 900}}, "clear", ""),
    ],
)
def test_answers_that_are_alike(trial: Trial, more: dict[str, Any], expected: str, words: str) -> None:
    found = judge("answers-differ", compared(trial, 0, **more))
    assert found.verdict == expected and words in found.summary


def rrset(number: int, nbytes: int = 100, **more: Any) -> dict[str, Any]:
    return {"owner": f"n{number}", "rtype": "TXT", "records": 1, "bytes": nbytes, "verdict": "truncated"} | more


def asked(trial: Trial, where: str, different: int, named: int | None = None, outcome: str = "done") -> None:
    listed = [rrset(number, 100 + number) for number in range(different if named is None else named)]
    summary = {"outcome": outcome, "rrsets": 50, "rrsets_different": different, "differences": listed}
    trial.record.instruments[f"records-{where}"] = summary


@pytest.mark.parametrize(("different", "more"), [(1, ""), (10, ""), (11, ", and 1 more"), (30, ", and 20 more")])
def test_ten_rrsets_are_named_the_largest_first(trial: Trial, different: int, more: str) -> None:
    asked(trial, "secondary", different)
    found = judge("rrsets-lost", trial)
    assert found.evidence == {"rrsets_secondary": different}
    largest = f"files: n{different - 1} TXT (1 record, {99 + different} bytes): truncated"
    assert largest in found.summary and found.summary.endswith(f"truncated{more}.")


def test_rrsets_of_both_servers_are_told_of_each(trial: Trial) -> None:
    assert all_traps()["rrsets-lost"].after(trial) is None
    asked(trial, "primary", 0)
    asked(trial, "secondary", 0)
    assert judge("rrsets-lost", trial).verdict == "clear"
    asked(trial, "secondary", 0, outcome="timeout")
    assert judge("rrsets-lost", trial).verdict == "cannot-tell"
    asked(trial, "secondary-updated", 2)
    found = judge("rrsets-lost", trial)
    assert found.evidence == {"rrsets_primary": 0, "rrsets_secondary": 0, "rrsets_secondary-updated": 2}
    assert found.summary.startswith("The secondary after the update answers 2 of 50 RRsets otherwise")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"verdict": "changed", "lacking": 2, "extra": 1}, "2 records lacking, 1 extra"),
        ({"verdict": "absent", "rcode": 3}, "absent (RCODE 3)"),
        ({"verdict": "truncated"}, "truncated"),
        ({"verdict": "no-answer"}, "no answer"),
        ({"verdict": "damaged"}, "cannot be read"),
    ],
)
def test_the_difference_of_an_rrset_in_words(found: dict[str, Any], words: str) -> None:
    assert verdict(found) == words


def test_the_size_of_an_rrset_in_words(trial: Trial) -> None:
    asked(trial, "primary", 1, named=0)
    trial.record.instruments["records-primary"]["differences"] = [rrset(7, 70_000, records=1_200)]
    assert "n7 TXT (1,200 records, 70,000 bytes): truncated" in judge("rrsets-lost", trial).summary
