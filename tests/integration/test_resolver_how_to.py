"""The how-to of resolvers by itself: from a capture to a report of a run in which the world covers it."""

from __future__ import annotations

from pathlib import Path

import others
import pytest
from test_doc_commands import ROOT, follow

from dnsrig.runs.run import Run

pytestmark = pytest.mark.servers

PAGE = "docs/how-to/resolver.md"
SERVER = "198.18.0.2"
"""As on the page."""
QUERIES = 600


def write_capture(path: Path) -> None:
    from captures import of_clients_of_a_resolver, pcap  # not above: scapy takes a second to load

    path.write_bytes(pcap(of_clients_of_a_resolver(SERVER, QUERIES)))


@pytest.mark.full
def test_what_the_how_to_writes_is_understood(tmp_path: Path) -> None:
    write_capture(tmp_path / "clients.pcap")
    follow((ROOT / PAGE).read_text(), tmp_path, how="plan")


@pytest.mark.full
def test_the_how_to_alone(tmp_path: Path) -> None:
    write_capture(tmp_path / "clients.pcap")
    follow((ROOT / PAGE).read_text(), tmp_path)
    (directory,) = (tmp_path / "try/candidate").iterdir()
    assert (directory / "report.html").stat().st_size
    trials = Run.open(directory).trials
    assert {trial.record.spec.variant.label for trial in trials} == {"resolver=ours", "resolver=candidate"}
    for trial in trials:
        record, verdicts = trial.record, {check.name: check.verdict for check in trial.record.checks}
        assert record.outcome == "done" or others.was_late(record), "other tests may have the CPU meanwhile"
        assert {verdicts[name] for name in ("names-in-world", "resolver-level", "upstream-do")} == {"passed"}, verdicts
        assert set(trial.load.rcodes) == {"NOERROR"}
        assert record.spec.stream is not None and record.spec.stream.queries == QUERIES
