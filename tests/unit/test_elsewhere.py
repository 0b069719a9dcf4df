"""Hosts on other machines: where they may be, what their programs are told, and whose clock a moment is of."""

from __future__ import annotations

import io
import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import model, path, trial_specs
from dnsrig.lab import addresses, host_calls, process
from dnsrig.lab.host import Host
from dnsrig.lab.ledger import Ledger
from dnsrig.lab.remote_machine import LOST, Input, Program, RemotePopen
from dnsrig.machines import arrival, far_end, folders, ssh_machine
from dnsrig.machines.ssh_machine import HostingMachine
from dnsrig.rundir import HostSpec, MachineSpec, TrialSpec
from dnsrig.runs.clocks import SAME, Line

EXPERIMENT = """
title = "x"
question = "?"
procedure = "{procedure}"
limit_s = 60
[hosts.primary]
server = "echo@engine"
{more}
[dataset]
kind = "tiny-zones"
"""
RACK = {"rack-1": HostingMachine(MachineSpec(ssh="root@rack-1"), [0, 1, 2, 3])}
GENERATOR = '[hosts.generator-1]\nmachine = "rack-1"\nnic = "eth1"\n[options]\ngenerators = 1\n'


def spec(
    folder: Path, more: str, procedure: str = "latency", looked: dict[str, HostingMachine] | None = RACK
) -> TrialSpec:
    file = folder / "one.toml"
    file.write_text(EXPERIMENT.format(procedure=procedure, more=more))
    document = model.load(file, "quick", [])
    (point,) = path.under_one_kernel(model.points(document))
    provisional = trial_specs.provisional("one", point, [0, 1])
    dataset = provisional.dataset
    servers = {h.server.name: h.server for h in provisional.hosts.values() if h.server}
    return trial_specs.spec("run", "one", point, servers, [dataset], [0, 1], elsewhere=looked)


class TestPlace:
    def test_a_generator_elsewhere_is_joined_by_an_interface_of_each(self, tmp_path: Path) -> None:
        made = spec(tmp_path, 'nic = "eth2"\n' + GENERATOR)
        assert made.generators == ["generator-1"] and made.machines == {"rack-1": RACK["rack-1"].spec}
        assert made.hosts["generator-1"].cpus == [1, 2, 3], "the first is left to what looks at the machine"
        kinds = {link.ends: link.kind for link in made.links}
        assert kinds == {("primary", "generator-1"): "nic", ("observer", "primary"): "veth"}

    def test_generators_of_one_machine_share_its_interface(self, tmp_path: Path) -> None:
        two = GENERATOR.replace("generators = 1", "generators = 2").replace(
            "[options]", '[hosts.generator-2]\nmachine = "rack-1"\nnic = "eth1"\n[options]'
        )
        made = spec(tmp_path, 'nic = "eth2"\n' + two)
        assert made.hosts["generator-1"].nic_shared and made.hosts["generator-2"].nic_shared
        assert not made.hosts["primary"].nic_shared

    def test_variants_without_machines_are_called_as_before(self, tmp_path: Path) -> None:
        before = spec(tmp_path, "").variant.id
        assert spec(tmp_path, 'nic = "eth2"\n').variant.id != before

    @pytest.mark.parametrize(
        ("more", "procedure", "says"),
        [
            (GENERATOR, "latency", "primary needs an interface of this machine"),
            (
                'nic = "e"\n' + GENERATOR.replace('nic = "eth1"', ""),
                "latency",
                "needs an interface of the machine rack-1",
            ),
            ('machine = "rack-1"\nnic = "e"', "latency", "hosts.primary.machine: it is under test"),
            ('[hosts.observer]\nmachine = "rack-1"', "latency", "hosts.observer.machine: it looks at all others"),
            (
                'nic = "e"\n' + GENERATOR.replace("rack-1", "rack-7"),
                "latency",
                "the machine rack-7, whose address is not known",
            ),
            (
                'nic = "e"\n' + GENERATOR + "\n[path]\ndelay_ms = 10",
                "latency",
                "[path] applies to the link primary - generator-1, which joins two machines",
            ),
            ('nic = "e"\n' + GENERATOR.replace("nic", "cpus = [9]\nnic"), "latency", "there is no CPU 9 on rack-1"),
            ("[options]\ngenerators = 65", "latency", "options.generators = 65"),
        ],
    )
    def test_what_cannot_be_is_told(self, more: str, procedure: str, says: str, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as told:
            spec(tmp_path, more, procedure)
        assert says in told.value.message and told.value.hint

    def test_before_machines_are_looked_at_nothing_is_known_of_them(self, tmp_path: Path) -> None:
        made = spec(tmp_path, 'nic = "eth2"\n' + GENERATOR, looked=None)
        assert made.machines == {} and made.hosts["generator-1"].cpus == [0]

    def test_clients_are_divided_among_hosts(self) -> None:
        assert [addresses.clients(number, 2) for number in range(2)] == ["198.19.0.0/17", "198.19.128.0/17"]

    def test_a_file_has_to_name_them(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="whose address is not known"):
            ssh_machine.look(["rack-1"], None, print)
        (tmp_path / "machines.toml").write_text('[machines.rack-2]\nssh = "a"\n')
        with pytest.raises(UsageError, match="has no machine rack-1"):
            ssh_machine.look(["rack-1"], tmp_path / "machines.toml", print)
        assert ssh_machine.look([], None, print) == {}


class TestClock:
    @given(
        here=st.integers(0, 10**16),
        at=st.integers(0, 10**16),
        offset=st.integers(-(10**15), 10**15),
        drift=st.floats(-200_000, 200_000),
    )
    def test_there_and_back(self, here: int, at: int, offset: int, drift: float) -> None:
        line = Line(at, offset, drift, 0)
        # A moment years away from the comparison is known to the precision of a float of the way there.
        assert abs(line.here(line.there(here)) - here) <= 2

    def test_rows(self) -> None:
        line = Line(1_000_000_000, 3_700_000_000, 50_000.0, 20)
        here = [1_000_000_000, 2_000_000_000, 90_000_000_000]
        frame = pl.DataFrame({"time_ns": [*map(line.there, here), 0], "value": [1, 2, 3, 4]})
        moved = line.rows_here(frame, "time_ns")
        assert all(abs(a - b) <= 1 for a, b in zip(moved["time_ns"], [*here, 0]))
        assert moved["value"].to_list() == [1, 2, 3, 4] and SAME.here(7) == SAME.there(7) == 7


class TestWords:
    def test_paths_are_those_of_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DNSRIG_CACHE", "/here/cache")
        monkeypatch.setenv("DNSRIG_ENGINE", "/here/cache/bin/dnsrig-engine")
        monkeypatch.chdir(tmp_path)
        machine = ssh_machine.SshMachine("a", MachineSpec(ssh="a"), Path("runs/01.running"))
        machine.looked = {"folder": "/there/t", "cache": "/there/c", "engine": "/there/e"}
        machine._places = machine._known()
        for here, there in (
            ("/here/cache/datasets/x/zones.list", "/there/c/datasets/x/zones.list"),
            ("--zones=/here/cache/z", "--zones=/there/c/z"),
            ("/here/cache/bin/dnsrig-engine", "/there/e"),
            ("--out=runs/01.running/load", "--out=/there/t/load"),
            (f"{tmp_path}/runs/01.running", "/there/t"),
            ("a,netns=/here/cache/n,cgroup=/sys/x", "a,netns=/there/c/n,cgroup=/sys/x"),
            ("/here/cached", "/here/cached"),
            ("/elsewhere/here/cache", "/elsewhere/here/cache"),
        ):
            assert machine.there(here) == there
        assert machine._there([["runs/01.running", "/mnt", True]]) == [["/there/t", "/mnt", True]]


class TestProgram:
    """One on another machine, as it looks from here."""

    def popen(self, **how: Any) -> RemotePopen:
        self.sent: list[int] = []
        return RemotePopen(self.sent.append, lambda: True, **{"stdin": None, "stdout": None, "stderr": None, **how})

    def test_lines_are_read_until_it_ends(self) -> None:
        popen = self.popen(stdout=subprocess.PIPE)
        assert popen.stdout is not None and popen.poll() is None
        popen.take("stdout", "one\n")
        popen.end(3)
        assert [*popen.stdout] == ["one\n"] and popen.wait(0) == popen.returncode == 3

    def test_what_is_not_text_is_passed_on_as_well(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        lab = host_calls.Lab(lambda **event: told.put(event), Ledger(tmp_path / "x.json", -1))
        lab.hosts["here"] = Host("here", HostSpec(address="127.0.0.1", cpus=[*os.sched_getaffinity(0)]), namespace="")
        monkeypatch.setattr(host_calls, "_labs", [lab])
        host_calls.start(1, "here", Program(["printf", r"one\n\377two\nthree"]), False)
        events = [*iter(lambda: told.get(timeout=30).get("line"), None)]
        assert events == ["one\n", "\ufffdtwo\n", "three"]

    def test_files_stay_open_for_it(self, tmp_path: Path) -> None:
        with (tmp_path / "log").open("wb") as file:
            popen = self.popen(stdout=file, stderr=subprocess.STDOUT)
        popen.take("stdout", "said\n")
        popen.take("stderr", "complained\n")
        popen.end(0)
        assert (tmp_path / "log").read_text() == "said\ncomplained\n"

    def test_signals_go_to_it_while_it_lives(self) -> None:
        popen = self.popen()
        popen.terminate()
        popen.kill()
        popen.end(LOST)
        popen.kill()
        assert self.sent == [signal.SIGTERM, signal.SIGKILL]

    def test_one_that_does_not_end(self) -> None:
        with pytest.raises(subprocess.TimeoutExpired):
            self.popen().wait(0.01)

    def test_its_input_is_closed_once(self) -> None:
        written: list[str] = []
        stdin = Input(written.append, lambda: written.append("end"))
        stdin.write("a\n")
        stdin.flush()
        stdin.close()
        stdin.close()
        assert written == ["a\n", "end"]


class TestFarEnd:
    def test_lines_come_whole_and_dots_are_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reading, writing = os.pipe()
        os.write(writing, b'..{"a": 1}\n.{"b"')
        os.write(writing, b": 2}\n...\n")
        os.close(writing)
        kept = os.dup(0)
        os.dup2(reading, 0)
        try:
            assert [*arrival.lines()] == [b'{"a": 1}', b'{"b": 2}']
        finally:
            os.dup2(kept, 0)
            os.close(reading)
            os.close(kept)

    def test_arguments_and_results_arrive_as_their_types(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "part").write_bytes(b"\x00\xff")
        machine = ssh_machine.SshMachine("a", MachineSpec(ssh="a"), tmp_path)
        monkeypatch.setattr(machine, "_send", lambda message: far_end.answer(json.loads(json.dumps(message))))
        monkeypatch.setattr(far_end, "tell", lambda **what: machine._waiting[what["answer"]].put(what))
        assert machine.call(folders.part, str(tmp_path / "part"), 0) == b"\x00\xff"
        machine.call(folders.receive, str(tmp_path / "arriving"), 0, b"\xfe\x00")
        assert (tmp_path / "arriving").read_bytes() == b"\xfe\x00"
        (tmp_path / "folder").mkdir()
        packed = machine.call(folders.pack, tmp_path / "folder", tmp_path / "archive")
        assert packed.path == tmp_path / "archive" and packed.size_bytes > 0
        found = machine.call(process.privileges, os.getpid())
        assert found is not None and found.user == os.getuid()

    @pytest.mark.parametrize(
        ("call", "told"),
        [
            ("dnsrig.machines.folders:lacking", {"answer": 1, "value": ["/not/there"]}),
            ("os:getpid", {"answer": 1, "error": "os is not a part of dnsrig", "hint": ""}),
            ("dnsrig.errors:nothing", {"answer": 1, "error": "AttributeError", "hint": ""}),
        ],
    )
    def test_what_is_called_is_done(self, call: str, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        said: list[dict[str, Any]] = []
        monkeypatch.setattr(far_end, "tell", lambda **what: said.append(what))
        far_end.answer({"call": call, "arguments": [["/not/there"]], "named": {}, "id": 1})
        (found,) = said
        assert {**found, **({"error": found["error"].split(":")[0]} if "error" in found else {})} == told


class FakeConnection:
    """A machine that answers what it is asked for, and then is gone; ssh takes what is written for some time."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self.process = self
        self.stdin = io.BytesIO()
        self.stdout = iter(json.dumps(line).encode() + b"\n" for line in lines)


def test_when_a_machine_is_gone_all_that_waits_is_told() -> None:
    machine = ssh_machine.SshMachine("rack-1", MachineSpec(ssh="a"), Path("/tmp"))
    machine._connection = FakeConnection([{"process": 5, "stream": "stdout", "line": "x\n"}])  # type: ignore[assignment]
    popen = RemotePopen(lambda number: None, lambda: True, stdin=None, stdout=subprocess.PIPE, stderr=None)
    machine._processes[5] = popen
    answers = machine._waiting[1] = ssh_machine.Answers()
    listening = threading.Thread(target=machine._listen)
    listening.start()
    listening.join(10)
    assert popen.poll() == LOST and answers.get_nowait() is ssh_machine.LOST_ANSWER
    sent: list[dict[str, Any]] = []
    machine._send = sent.append  # type: ignore[method-assign]
    with pytest.raises(DnsrigError, match="the machine rack-1 does not answer"):
        machine.call(host_calls.look)
    assert not sent, "no answer can come, so a call does not wait for one until its limit"


@pytest.mark.parametrize("line", [b"soul", b"5", b"[]", b'{"process": 5}', b'{"process": 5, "ended": "x"}', b"\xff"])
def test_after_what_nobody_understands_nothing_waits(line: bytes) -> None:
    """Also for a call that another thread begins while the programs are ended."""
    machine = ssh_machine.SshMachine("rack-1", MachineSpec(ssh="a"), Path("/tmp"))
    connection = FakeConnection([])
    connection.stdout = iter([line + b"\n"])
    machine._connection = connection  # type: ignore[assignment]
    popens = [RemotePopen(lambda number: None, lambda: True, stdin=None, stdout=None, stderr=None) for _ in range(3)]
    machine._processes = {5: popens[0], 6: popens[1]}
    ended = popens[0].end

    def end(status: int) -> None:
        machine._processes[7] = popens[2]
        ended(status)

    popens[0].end = end  # type: ignore[method-assign]
    answers = machine._waiting[1] = ssh_machine.Answers()
    machine._listen()
    assert answers.get_nowait() is ssh_machine.LOST_ANSWER
    assert [popen.poll() for popen in popens] == [LOST, LOST, None], "the last one's own call fails"
    with pytest.raises(DnsrigError, match="does not answer"):
        machine.call(host_calls.look)


def test_what_a_killed_far_end_left_is_removed_although_ssh_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ssh_machine.SshMachine("rack-1", MachineSpec(ssh="a"), Path("/tmp"))
    machine.looked, done = {"folder": "/x"}, []
    monkeypatch.setattr(type(machine._connection), "is_lost", False)
    monkeypatch.setattr(machine._connection, "hang_up", lambda: done.append("hung up"))
    monkeypatch.setattr(machine, "_connect", lambda: done.append("connected"))
    machine.close()
    assert done == ["hung up"], "the far end was there, and removes everything by itself"
    machine._is_silent.set()
    machine.close()
    assert done[1:] == ["hung up", "connected", "hung up"]
