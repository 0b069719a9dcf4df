"""Context switches and page faults of processes, and what they make of an answer."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from trial_data import clean_trial, measured, series, use

from dnsrig.lab import process_counts
from dnsrig.lab.process_counts import Reading, between, read
from dnsrig.metrics import all_metrics
from dnsrig.rundir import ProcessCounts

STAT = "{pid} (a) name (of it) S 1 1 1 0 -1 4194304 {minor} 7 {major} 0 5 3 0 0 20 0 2 0 1000 0 0"
STATUS = "Name:\ta\nGroups:\t\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}\n"


def process(proc: Path, pid: int, minor: int, major: int, threads: dict[int, tuple[int, int]]) -> None:
    for thread, (voluntary, involuntary) in threads.items():
        folder = proc / f"{pid}/task/{thread}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "status").write_text(STATUS.format(voluntary=voluntary, involuntary=involuntary))
    (proc / f"{pid}/stat").write_text(STAT.format(pid=pid, minor=minor, major=major))


def test_all_threads_of_all_processes_are_read(tmp_path: Path) -> None:
    process(tmp_path, 10, 100, 3, {10: (5, 1), 11: (50, 2)})
    process(tmp_path, 20, 7, 0, {20: (0, 0)})
    assert read([10, 20, 30], tmp_path) == Reading({10: (5, 1), 11: (50, 2), 20: (0, 0)}, {10: (100, 3), 20: (7, 0)})


def test_what_is_new_counts_from_its_beginning_and_what_ended_is_told() -> None:
    before = Reading({1: (10, 1), 2: (900, 90)}, {1: (100, 2), 2: (5, 5)})
    after = Reading({1: (14, 3), 3: (7, 0)}, {1: (150, 2), 3: (20, 1)})
    expected = ProcessCounts(voluntary_switches=11, involuntary_switches=2, minor_faults=70, major_faults=1)
    assert between(before, after) == expected


def test_a_real_thread_that_waits_and_touches_memory_is_counted() -> None:
    """By this kernel: the numbers stand where we read them."""
    before, stop = read([os.getpid()]), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    for _ in range(20):
        time.sleep(0.001)
    touched = bytearray(64 << 20)
    touched[:: os.sysconf("SC_PAGE_SIZE")] = b"x" * len(range(0, len(touched), os.sysconf("SC_PAGE_SIZE")))
    found = between(before, read([os.getpid()]))
    stop.set()
    thread.join()
    assert found.voluntary_switches >= 20
    assert found.minor_faults >= 32, "huge pages have 2 MB"


def test_a_process_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert process_counts.read([1], tmp_path) == Reading()


def value(name: str, trial: object) -> float | None:
    return all_metrics()[name].compute(trial)


def test_an_answer_costs_what_was_counted_by_those_answered(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    start = measured(trial, 1)
    use(
        trial, series(start, secondary__cgroup__cpu_user_us=[0, 3_000], secondary__cgroup__cpu_system_us=[1_000, 3_000])
    )
    trial.record.counts["secondary"] = ProcessCounts(
        voluntary_switches=500, involuntary_switches=10, minor_faults=30, major_faults=2
    )
    costs = [name for name in all_metrics() if "_an_answer" in name]
    assert {value(name, trial) for name in costs} == {None}, "nothing was asked"
    trial.record.instruments["load"] = {"model": "rate", "sent": 1_100, "answered": 1_000}
    found = {name: value(name, trial) for name in costs}
    assert found == pytest.approx(
        {
            "user_cpu_an_answer_us": 3.0,
            "kernel_cpu_an_answer_us": 2.0,
            "voluntary_switches_an_answer": 0.5,
            "involuntary_switches_an_answer": 0.01,
            "page_faults_an_answer": 0.032,
        }
    )
    trial.record.counts.clear()
    assert value("page_faults_an_answer", trial) is None, "a run of an earlier version"
    trial.record.instruments["load"] = {"model": "ramp", "answered": 1_000}
    assert value("user_cpu_an_answer_us", trial) is None
