"""Files that were cut, overwritten or lost: what is whole is read, what is not is told, and nothing ends the report."""

from __future__ import annotations

import io
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import browsing
import damaged_files
import polars as pl
import pytest
import synthetic
from command_line import status
from damaged_files import ROWS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from suites import examples

from dnsrig import checksums, traps
from dnsrig.cli._exits import EXIT_INCOMPLETE
from dnsrig.comparison.summary import summarise
from dnsrig.errors import DnsrigError
from dnsrig.rundir import Finding, Findings, TrialRecord, read_json, write_json
from dnsrig.runs import rows
from dnsrig.runs.rows import DamagedFile
from dnsrig.runs.run import Run

Damage = Callable[[bytes], bytes]


def cut(share: float) -> Damage:
    return lambda data: data[: int(share * len(data))]


def overwritten(at: float, length: int, seed: int) -> Damage:
    def damage(data: bytes) -> bytes:
        start = int(at * len(data))
        return data[:start] + random.Random(seed).randbytes(length) + data[start + length :]

    return damage


DAMAGES = st.one_of(
    st.builds(cut, st.floats(0, 1)),
    st.builds(overwritten, st.floats(0, 1), st.integers(1, 400), st.integers(0, 1 << 30)),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return damaged_files.build(tmp_path_factory.mktemp("whole"), trials=1)


def record(run: Path) -> None:
    for path in run.glob("trials/*/*/trial.json"):
        written = read_json(path, TrialRecord)
        written.files = checksums.of_trial(path.parent)
        write_json(path, written)


def forget(run: Path) -> None:
    """As a run of an earlier version."""
    for path in run.glob("trials/*/*/trial.json"):
        written = read_json(path, TrialRecord)
        written.files = {}
        write_json(path, written)


def of_trap(findings: list[Finding], verdict: str = "found") -> list[Finding]:
    return [finding for finding in findings if (finding.trap, finding.verdict) == ("damaged-files", verdict)]


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=examples(3, full=12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGES, recorded=st.booleans())
def test_no_damage_ends_the_examination(
    runs: dict[str, Path], tmp_path: Path, name: str, damage: Damage, recorded: bool
) -> None:
    directory = tmp_path / "run"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(runs[ROWS[name]], directory)
    if not recorded:
        forget(directory)
    (path,) = directory.glob(f"trials/*/*/{name}")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    run = Run.open(directory)
    findings = traps.examine(run)
    assert summarise(run).height == len(run.trials[0].metrics)
    assert not list(run.failures), "what a damaged file breaks is no fault of a metric or a trap"
    told = of_trap(findings)
    if recorded:
        assert bool(told) == (path.read_bytes() != whole)
    for finding in told:
        assert name in finding.summary and str(path.parent) in finding.remedy


def test_what_lies_before_the_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    batches = [pl.DataFrame({"host": ["a"] * 10, "value": list(range(10 * n, 10 * n + 10))}) for n in range(5)]
    streams = [stream(batch) for batch in batches]
    ends = [[message.end for message in rows.messages(io.BytesIO(data), len(data))] for data in streams]
    head, mark = streams[0][: ends[0][0]], streams[0][ends[0][1] :]
    bodies = [data[end[0] : end[1]] for data, end in zip(streams, ends, strict=True)]
    data = b"".join([head, *bodies, mark])
    schema = {"host": pl.String, "value": pl.Int64}
    path.write_bytes(data)
    assert rows.read(path, None, schema).frame["value"].to_list() == list(range(50))
    assert rows.read(path, None, schema).damage == ""
    path.write_bytes(data[: len(head) + 3 * len(bodies[0]) + 100])
    found = rows.read(path, None, schema)
    assert found.frame["value"].to_list() == list(range(30))
    assert f"whole up to byte {len(head) + 3 * len(bodies[0]):,}" in found.damage
    path.write_bytes(data[: len(head) + 2 * len(bodies[0])])
    assert rows.read(path, None, schema).frame.height == 20
    assert rows.read(path, None, schema).damage == "", "a writer that was killed ends so: only a checksum can tell"
    assert "had" in rows.read(path, checksums.of(io.BytesIO(data)), schema).damage
    path.unlink()
    assert rows.read(path, None, schema).damage == ""
    assert "is gone" in rows.read(path, checksums.of(io.BytesIO(data)), schema).damage


def test_no_length_beyond_the_file_reaches_polars(tmp_path: Path) -> None:
    """It asked for as many bytes, and the process ended: "memory allocation of 915118214923421558 bytes failed"."""
    path, schema = tmp_path / "rows.arrow", {"text": pl.String, "value": pl.Int64}
    data = stream(pl.DataFrame({"text": ["longer than twelve"] * 9, "value": range(9)}, schema=schema))
    start = next(rows.messages(io.BytesIO(data), len(data))).end + 8
    (head,) = struct.unpack_from("<i", data, start - 4)
    heights = set()
    for at in range(start, start + head, 4):
        path.write_bytes(data[:at] + struct.pack("<I", 0x0CB3272B) + data[at + 4 :])
        heights.add(rows.read(path, None, schema).frame.height)
    assert heights == {0, 9}, "some words mean nothing"


def stream(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("at", [0, 70_000, 131_072, 199_999])
def test_a_changed_byte_is_found_and_what_is_before_it_kept(at: int) -> None:
    data = random.Random(1).randbytes(200_000)
    recorded = checksums.of(io.BytesIO(data))
    assert checksums.whole_bytes(io.BytesIO(data), recorded) == len(data)
    changed = bytearray(data)
    changed[at] ^= 1
    assert checksums.whole_bytes(io.BytesIO(changed), recorded) == at // 4096 * 4096
    assert checksums.whole_bytes(io.BytesIO(data + b"more"), recorded) == 196_608, (
        "up to the last piece, which is another"
    )
    assert checksums.whole_bytes(io.BytesIO(data[:70_000]), recorded) == 69_632


def test_checksums_stay_small() -> None:
    recorded = checksums.of(io.BytesIO(bytes(20_000_000)))
    assert (recorded.chunk_bytes, len(recorded.crc32)) == (16_384, 8 * 1221)
    assert checksums.whole_bytes(io.BytesIO(bytes(20_000_000)), recorded) == 20_000_000


def test_nothing_is_derived_from_half_a_file_and_charts_show_it(runs: dict[str, Path], tmp_path: Path) -> None:
    """The growth of a counter over a cut file would be a wrong figure, not a rough one."""
    directory = Path(shutil.copytree(runs["cold start"], tmp_path / "run"))
    (whole,) = Run.open(directory).trials
    assert whole.value("secondary_cpu_s") is not None
    path = whole.directory / "samples.arrow"
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    written = read_json(whole.directory / "trial.json", TrialRecord)
    written.metrics = {}
    write_json(whole.directory / "trial.json", written)
    run = Run.open(directory)
    (trial,) = run.trials
    assert trial.value("secondary_cpu_s") is None
    with pytest.raises(DamagedFile, match=r"samples\.arrow"):
        trial.samples  # noqa: B018
    (drawn,) = run.as_far_as_whole().trials
    assert drawn.samples.height == 0, "its only batch is cut"
    assert drawn.value("secondary_cpu_s") is None
    said = {finding.trap: finding for finding in traps.examine(run) if finding.repeat == 1}
    assert said["cpu-contention"].verdict == "cannot-tell" and "samples.arrow" in said["cpu-contention"].summary


@pytest.mark.parametrize("kind", sorted(set(ROWS.values())))
def test_a_run_of_which_all_rows_are_damaged_is_shown(runs: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """Sentences read rows, too: one names why latencies have two ends. No metric, trap or chart guards them."""
    directory = Path(shutil.copytree(runs[kind], tmp_path / "root/synthetic/damaged"))
    for path in directory.glob("trials/*/*/*"):
        if path.name in ROWS:
            path.write_bytes(b"")
    client = browsing.client(tmp_path / "root", tmp_path / "cache")
    for page in ([], ["findings"], ["conditions"], ["trial/v00/1"]):
        assert client.get(browsing.address("synthetic/damaged", *page)).status_code == 200


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Of three trials one has a cut row file, one a cut trial.json."""
    directory = synthetic.build(
        tmp_path / "my runs" / "run", synthetic.Plan(servers=["bind@system"], zones=[10], repeats=3)
    )
    record(directory)
    for name in ("01/zones.arrow", "02/trial.json"):
        (path,) = directory.glob(f"trials/*/{name}")
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    (directory / "findings.json").write_text('{"findi')
    return directory


@pytest.mark.full
def test_the_report_is_drawn_and_says_what_is_damaged(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("TERM", "xterm")
    assert status(monkeypatch, "report", damaged, "--full") == EXIT_INCOMPLETE
    shown = capsys.readouterr().out
    page = (damaged / "report.html").read_text()
    written = read_json(damaged / "findings.json", Findings).findings
    (found,) = of_trap(written)
    assert found.evidence == {"damaged_repeats": "1, 2"}
    for text in (shown, page, found.summary):
        assert "zones.arrow" in text and "02/trial.json" in text
    assert "<svg" in page and "2 of 3 trials, 1 cannot be read" in page
    folder = next(damaged.glob("trials/*/01"))
    assert f"mv '{folder}' '{folder}.damaged'" in shown, "as a shell takes it"
    assert f"dnsrig run --resume '{damaged}'" in shown


def test_a_trial_of_a_newer_dnsrig_is_still_refused(damaged: Path) -> None:
    (path,) = damaged.glob("trials/*/02/trial.json")
    path.write_text('{"schema_version": 1000}')
    with pytest.raises(DnsrigError, match="newer dnsrig"):
        Run.open(damaged).trials  # noqa: B018


def test_a_sample_of_damaged_runs(tmp_path: Path) -> None:
    """Every command, with files that are links, FIFOs and folders, too. The bench has thousands of them."""
    bench = Path(__file__).parents[2] / "benches/damaged_runs.py"
    words = [sys.executable, str(bench), "--smoke", "--cases", "2", "--seed", "2"]
    done = subprocess.run(
        words, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults: 0" in done.stdout, done.stdout
