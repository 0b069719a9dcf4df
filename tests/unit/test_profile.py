from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.lab import profile
from dnsrig.lab.profile import UNKNOWN, Profiler, named, samples, stacks

SCRIPT = """\
 4242  3660.100000001:\x20
\tffffffff8205856a __inet_hash_connect
\tffffffff821ef691 do_syscall_64
\t          10a7c0 connect
\t               0 [unknown]
\t    7f4e6ca56240 [unknown]

    0  3660.105000000:\x20
\tffffffff821f4dab pv_native_safe_halt

 4242  3660.110000002:\x20
\t          10a7c0 std::pair<int, char>::swap(int) const
\t          10a7c1 odd;name

123456  3660.115000000:\x20
\t          10a7c0 main

"""


def folded(text: str, *pids: int) -> dict[str, int]:
    return dict(Counter(stack for _, stack in stacks(samples(text.splitlines(keepends=True)), pids)))


def test_stacks_are_turned_outermost_first_and_unknown_frames_merged() -> None:
    assert folded(SCRIPT, 4242) == {
        f"{UNKNOWN};connect;do_syscall_64;__inet_hash_connect": 1,
        "odd:name;std::pair<int, char>::swap(int) const": 1,
    }


def test_each_sample_has_its_time_on_the_clock_of_the_trial() -> None:
    times = [time_ns for time_ns, _ in stacks(samples(SCRIPT.splitlines()), (4242,))]
    assert times == [3_660_100_000_001, 3_660_110_000_002]


def test_copies_of_a_function_have_its_name() -> None:
    assert folded(" 7 1.000000000: \n\tff inet_bhash2_conflict.isra.0\n\tff main.part.0.cold\n\tff a.isra.b\n", 7) == {
        "a.isra.b;main;inet_bhash2_conflict": 1
    }


def test_only_the_processes_asked_for_count() -> None:
    assert folded(SCRIPT, 123456) == {"main": 1}
    assert folded(SCRIPT, 5) == {}
    assert folded(SCRIPT + SCRIPT, 0) == {"pv_native_safe_halt": 2}


def test_a_text_that_breaks_off_keeps_its_last_sample() -> None:
    assert folded(" 7 1.000000000: \n\tff main", 7) == {"main": 1}


FRAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
TEXTS = st.lists(
    st.one_of(
        st.text(), st.integers().map(lambda pid: f" {pid}  12.000000345: "), FRAMES.map(lambda name: f"\t  ff {name}")
    )
)


@given(TEXTS)
def test_any_text_is_read_and_what_comes_of_it_can_be_read_again(lines: list[str]) -> None:
    pids = range(-1000, 1000)
    found = Counter(stack for _, stack in stacks(samples(line + "\n" for line in lines), pids))
    assert found.total() <= sum(line.startswith("\t") for line in lines)
    text = "".join(f"{stack} {count}\n" for stack, count in found.items())
    read = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in text.splitlines()}
    assert read == found
    for stack in found:
        frames = stack.split(";")
        assert all(0 < len(frame) <= profile.LONGEST_NAME for frame in frames)
        assert (UNKNOWN, UNKNOWN) not in pairwise(frames)


NAMES = st.sampled_from(["main", "connect", "operator new(unsigned long)", "0"])


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(NAMES, min_size=1))))
def test_what_was_sampled_is_counted(taken: list[tuple[int, list[str]]]) -> None:
    text = "".join(
        f"{pid:5d} 12.000000345: \n" + "".join(f"\t{7:16x} {name}\n" for name in names) + "\n" for pid, names in taken
    )
    wanted = Counter(";".join(reversed(names)) for pid, names in taken if pid == 1)
    assert folded(text, 1) == wanted


def test_zeros_for_addresses_are_names_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = tmp_path / "kallsyms"
    assert not named(symbols)
    symbols.write_text("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n")
    assert named(symbols)
    symbols.write_text("0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n")
    assert not named(symbols)
    monkeypatch.setattr(profile, "KERNEL_NAMES", symbols)
    fake_perf(tmp_path, "exit 1", monkeypatch)
    assert "kernel.kptr_restrict" in (Profiler.unavailable() or "")


@pytest.fixture
def perf() -> None:
    if why := Profiler.unavailable():
        pytest.skip(why)


def spend(cpu_s: float) -> None:
    enough_s = time.process_time() + cpu_s
    while time.process_time() < enough_s:
        Path("/").stat()


@pytest.mark.usefixtures("perf")
def test_a_busy_process_is_seen_and_its_data_removed(tmp_path: Path) -> None:
    data, out = tmp_path / "perf.data", tmp_path / "profile-here.folded"
    before_ns = time.monotonic_ns()
    profiler = Profiler.start("here", sorted(os.sched_getaffinity(0)), data)
    spend(0.3)
    record = profiler.stop({os.getpid()}, out)
    counts = {stack: int(count) for stack, _, count in (line.rpartition(" ") for line in out.read_text().splitlines())}
    assert record.reason == ""
    assert sum(counts.values()) == record.samples
    assert 0.5 < record.samples / (0.3 * profile.RATE_HZ) < 2
    assert any("statx" in stack or "newfstatat" in stack for stack in counts), "kernel frames have names"
    assert sorted(tmp_path.iterdir()) == [out.with_suffix(".arrow"), out]
    rows = pl.read_ipc_stream(out.with_suffix(".arrow"))
    assert dict(rows["stack"].value_counts().iter_rows()) == dict(enumerate(counts.values()))
    assert before_ns <= rows["time_ns"].min() <= rows["time_ns"].max() <= time.monotonic_ns()


@pytest.mark.usefixtures("perf")
@pytest.mark.full
def test_a_process_that_did_nothing_is_said_to_be_in_no_sample(tmp_path: Path) -> None:
    idle = subprocess.Popen(["sleep", "60"])
    try:
        time.sleep(0.1)
        profiler = Profiler.start("here", sorted(os.sched_getaffinity(0)), tmp_path / "perf.data")
        record = profiler.stop({idle.pid}, tmp_path / "folded")
    finally:
        idle.kill()
        idle.wait()
    assert (record.samples, record.reason) == (0, "in no sample was a process of host here")


@pytest.mark.usefixtures("perf")
@pytest.mark.full
def test_perf_dies_with_the_trial(tmp_path: Path) -> None:
    program = (
        "import pathlib, time\n"
        "from dnsrig.lab.profile import Profiler\n"
        f"print(Profiler.start('here', [0], pathlib.Path({str(tmp_path / 'perf.data')!r})).popen.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    trial = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert trial.stdout is not None
    with trial:
        status = Path("/proc", trial.stdout.readline().strip(), "status")
        assert "Name:\tperf\n" in status.read_text()
        trial.send_signal(signal.SIGKILL)
        trial.wait()
    limit_s = time.monotonic() + 10
    while status.exists() and time.monotonic() < limit_s:
        time.sleep(0.02)
    assert not status.exists() or "State:\tZ" in status.read_text()


def fake_perf(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "perf"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setitem(profile.ENVIRONMENT, "PATH", f"{folder}:{profile.ENVIRONMENT['PATH']}")


@pytest.fixture
def kernel_names() -> None:
    if not named(profile.KERNEL_NAMES):
        pytest.skip("the kernel hides its names from this user")


def test_without_perf_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(profile.ENVIRONMENT, "PATH", str(tmp_path))
    assert "apt-get install linux-perf" in (Profiler.unavailable() or "")


@pytest.mark.usefixtures("kernel_names")
def test_what_perf_complains_of_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_perf(tmp_path, "exec <&-; echo Error: >&2; echo; echo 'No permission.' >&2; exit 255", monkeypatch)
    assert Profiler.unavailable() == "perf: No permission."


def test_a_perf_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_perf(tmp_path, "trap '' INT; echo ack; while :; do read line || exec sleep 60; done", monkeypatch)
    monkeypatch.setattr(profile, "STOP_LIMIT_S", 0.3)
    profiler = Profiler.start("here", [0], tmp_path / "perf.data")
    record = profiler.stop({1}, tmp_path / "folded")
    assert (record.samples, record.reason) == (0, "perf did not end within 0.3 s")
    assert profiler.popen.returncode == -signal.SIGKILL


def test_a_perf_that_never_starts_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_perf(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(profile, "START_LIMIT_S", 0.3)
    record = Profiler.start("here", [0], tmp_path / "perf.data").stop({1}, tmp_path / "folded")
    assert record.reason == "perf: it did not start, or was ended"
