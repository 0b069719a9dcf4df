"""What holds programs on their host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dnsrig.lab import process
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec

ASKS_FOR_EVERY_CPU = "taskset -p -c {cpu} $$; grep Cpus_allowed_list /proc/self/status"


def test_a_program_cannot_leave_the_cpus_of_its_host(tmp_path: Path) -> None:
    """Knot DNS ties its UDP threads to CPUs by number, and so ran on the instrument's."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU: there is nowhere to go")
    output = tmp_path / "output"
    hosts = {"left": HostSpec(address="198.18.0.1", cpus=[cpus[-1]])}
    with Network(hosts, []) as network, output.open("w") as file:
        command = ["sh", "-c", ASKS_FOR_EVERY_CPU.format(cpu=cpus[0])]
        started = process.start("sh", network.hosts["left"], command, stdout=file, stderr=file)
        assert started.popen.wait(timeout=10) == 0
    assert output.read_text().splitlines()[-1].split() == ["Cpus_allowed_list:", str(cpus[-1])]
