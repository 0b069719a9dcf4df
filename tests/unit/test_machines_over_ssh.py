"""Machines that are reached over SSH: their file, what is said to ssh, and what is brought."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dnsrig
from dnsrig import paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import runner, trial_calls
from dnsrig.machines import arrival, connection, dask, dask_access, document, packages, ssh_workers
from dnsrig.machines.connection import Connection
from dnsrig.machines.dask_access import Keys
from dnsrig.machines.document import MachineDocument
from dnsrig.machines.ssh_workers import Link

NOBODY = Keys("", "", "")


def file(folder: Path, text: str) -> Path:
    path = folder / "machines.toml"
    path.write_text(text)
    return path


class TestFile:
    def test_machines_by_their_names(self, tmp_path: Path) -> None:
        found = document.read(
            file(
                tmp_path,
                'config = "lab.conf"\n[machines.rack-1]\nssh = "root@a"\n'
                '[machines.rack-2]\nssh = "b"\npython = "sudo -n python3"\ncache = "/data/dnsrig"\n',
            )
        )
        assert found.config == str(tmp_path / "lab.conf")
        assert found.machines["rack-1"] == MachineDocument(ssh="root@a", python="python3", cache="")
        assert found.machines["rack-2"].python == "sudo -n python3"

    @pytest.mark.parametrize(
        ("text", "says", "hint"),
        [
            ("[machines", "is not TOML", ""),
            ("", "the key machines is missing", "[machines.NAME]"),
            ("machines = {}", "at least 1 item", ""),
            ("[machines.a]", "the key machines.a.ssh is missing", 'ssh = "root@…"'),
            ('[machines.a]\nssh = "a"\npyhton = "b"', "unknown key machines.a.pyhton", "did you mean python?"),
            ('colour = 1\n[machines.a]\nssh = "a"', "unknown key colour", "known keys: config, machines"),
            ('[machines.a]\nssh = "-oProxyCommand=x"', "machines.a.ssh = '-oProxyCommand=x'", ""),
            ('[machines.a]\nssh = "a b"', "it is one word, as ssh takes it", ""),
            ('[machines.a]\nssh = "a"\ncache = "here"', "it begins with /", ""),
            ('[machines."a b"]\nssh = "a"', "machines.a b = 'a b'", ""),
            ('[machines.a]\nssh = "x"\n[machines.b]\nssh = "x"\npython = "p"', "a and b are the same machine", ""),
        ],
    )
    def test_what_is_wrong_is_told(self, text: str, says: str, hint: str, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as told:
            document.read(file(tmp_path, text))
        assert says in told.value.message and hint in told.value.hint
        assert str(tmp_path / "machines.toml") in told.value.message

    def test_one_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"none.toml cannot be read"):
            document.read(tmp_path / "none.toml")


class TestCommand:
    def test_nobody_is_asked_anything_and_the_connection_is_its_own(self) -> None:
        words = connection.command(MachineDocument(ssh="root@a"), "/lab.conf", ["-R1:b:2"])
        assert words[:3] == ["ssh", "-F", "/lab.conf"] and words[-3:-1] == ["--", "root@a"] and "-R1:b:2" in words
        for option in ("BatchMode=yes", "ExitOnForwardFailure=yes", "ControlPath=none"):
            assert words[words.index(option) - 1] == "-o"
        assert "-F" not in connection.command(MachineDocument(ssh="a"), "", [])

    @pytest.mark.parametrize("shell", ["sh", "bash"])
    def test_any_shell_there_starts_it_and_it_tells_its_version_first(self, shell: str) -> None:
        *_, there = connection.command(
            MachineDocument(ssh="a", python=f"env A=b {shlex.quote(sys.executable)}"), "", []
        )
        told = subprocess.run(
            [shell, "-c", there],
            input=b"raise SystemExit(7)" + b" " * len(connection.source()),
            capture_output=True,
            check=False,
        )
        assert told.stdout.decode() == f'dnsrig: {{"python": [{sys.version_info[0]}, {sys.version_info[1]}]}}\n'
        assert told.returncode == 7


class TestWhy:
    """What ssh says, and how it ends, as a sentence."""

    @pytest.mark.parametrize(
        ("status", "said", "says"),
        [
            (255, "Host key verification failed.", "the host key of a is unknown"),
            (255, "root@a: Permission denied (publickey).", "a accepts none of the keys"),
            (255, "ssh: connect to host a port 22: No route to host", "a cannot be reached: ssh: connect"),
            (255, "Error: remote port forwarding failed for listen port 20000", "a forwards no ports"),
            (127, "sh: 1: python3: not found", "a cannot start python3: sh: 1: python3: not found"),
            (1, "sudo: a password is required", "the worker on a ended: sudo: a password is required"),
            (255, "", "a cannot be reached: ssh ended with status 255"),
        ],
    )
    def test_what_ssh_says(
        self, status: int, said: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "ssh"
        program.write_text(f"#!/bin/sh\necho {shlex.quote(said)} >&2\nexit {status}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        with pytest.raises(DnsrigError) as told:
            Link("a", MachineDocument(ssh="a"), "", "tls://127.0.0.1:1", NOBODY).start([])
        assert says in told.value.message and told.value.hint

    @pytest.mark.parametrize(("said", "times"), [("Address already in use", 3), ("No route to host", 1)])
    def test_other_ports_are_tried(
        self, said: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "ssh").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\necho {said} >&2\nexit 255\n')
        (tmp_path / "ssh").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        with pytest.raises(DnsrigError):
            Link("a", MachineDocument(ssh="a"), "", "tls://127.0.0.1:1", NOBODY).start([])
        calls = (tmp_path / "calls").read_text().splitlines()
        assert len(calls) == len({*calls}) == times

    def test_one_that_says_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "ANSWER_LIMIT_S", 0.2)
        (tmp_path / "ssh").write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / "ssh").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        with pytest.raises(DnsrigError, match="a does not answer within 0 s"):
            Link("a", MachineDocument(ssh="a"), "", "tls://127.0.0.1:1", NOBODY).start([])


class TestClosure:
    def test_it_is_what_is_installed_and_nothing_of_tests(self) -> None:
        names = {package.name.lower() for package in packages.distributions()}
        assert {"distributed", "tornado", "pydantic", "polars", "psycopg-binary"} <= names
        assert not names & {"dnsrig", "pytest", "mypy", "pip"}

    def test_dnsrig_with_its_engine_is_a_part_of_its_own(self) -> None:
        own, others = packages.parts()
        assert own.files["dnsrig/__init__.py"] == Path(dnsrig.__file__)
        assert own.files["bin/dnsrig-engine"] == paths.engine().resolve()
        assert "dnsrig/experiment/builtin/tour.toml" in own.files
        assert "distributed/worker.py" in others.files and "tornado/web.py" in others.files
        every = [*own.files, *others.files]
        assert not [name for name in every if "__pycache__" in name or name.startswith(("/", ".."))]

    def test_a_package_that_is_editable_brings_its_modules(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "added").mkdir()
        (tmp_path / "added/__init__.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        found = packages.files(installed(tmp_path, editable=True, points={"added.trap"}))
        assert found["added/__init__.py"] == tmp_path / "added/__init__.py"
        assert "added-1.dist-info/entry_points.txt" in found and "added.pth" not in found
        with pytest.raises(DnsrigError, match="installed editable"):
            packages.files(installed(tmp_path, editable=True, points=set()))

    def test_files_that_nobody_noted(self) -> None:
        package: Any = SimpleNamespace(name="bare", files=None)
        with pytest.raises(DnsrigError, match="bare"):
            packages.files(package)


def installed(folder: Path, *, editable: bool, points: set[str]) -> metadata.Distribution:
    about = folder / "added-1.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Name: added\nVersion: 1\n")
    (about / "RECORD").write_text("added.pth,,\nadded-1.dist-info/entry_points.txt,,\n")
    (about / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": editable}}))
    (about / "entry_points.txt").write_text("[dnsrig.traps]\n" + "".join(f"x = {point}\n" for point in points))
    return metadata.Distribution.at(about)


class TestArrival:
    def test_a_part_appears_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        part = made(tmp_path / "here")
        send(monkeypatch, stream(part))
        arrival.take(tmp_path / "there", part.name)
        arrived = tmp_path / "there" / part.name
        assert (arrived / "a/b.py").read_text() == "b = 1\n" and arrival.is_program(arrived / "run")
        assert {path.name for path in (tmp_path / "there").iterdir()} == {".lock", part.name}

    def test_one_that_was_there_meanwhile_stays(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        part = made(tmp_path / "here")
        for _ in range(2):
            send(monkeypatch, stream(part))
            arrival.take(tmp_path / "there", part.name)
        assert (tmp_path / "there" / part.name / "run").exists()

    @pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: data[:-1] + b"x", lambda data: b""])
    def test_what_is_cut_or_damaged_does_not_appear(
        self,
        harm: Callable[[bytes], bytes],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        part = made(tmp_path / "here")
        send(monkeypatch, harm(stream(part)))
        with pytest.raises(SystemExit):
            arrival.take(tmp_path / "there", part.name)
        assert [path.name for path in (tmp_path / "there").iterdir()] == [".lock"]

    def test_the_name_is_of_names_bytes_and_modes(self, tmp_path: Path) -> None:
        names = {made(tmp_path / "1").name, made(tmp_path / "2").name}
        (tmp_path / "2/a/b.py").chmod(0o755)
        files = {"a/b.py": tmp_path / "2/a/b.py", "run": tmp_path / "2/run"}
        assert len(names) == 1 and arrival.digest(files) not in names

    def test_a_run_that_is_silent_is_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arrival, "SILENCE_LIMIT_S", 1)
        reading, writing = os.pipe()
        monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
        with pytest.raises(SystemExit, match="the run is gone"):
            arrival.hear()
        os.close(writing)

    def test_what_no_run_has_used_for_long_is_removed(self, tmp_path: Path) -> None:
        for name in ("used", "recent", "old"):
            (tmp_path / name).mkdir()
        for name in ("used", "old"):
            os.utime(tmp_path / name, (0, 0))
        arrival.remove_unused(tmp_path, [tmp_path / "used"])
        assert {path.name for path in tmp_path.iterdir()} == {"used", "recent"}

    def test_it_finds_the_cache_as_dnsrig_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("DNSRIG_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, "/somewhere")
            assert arrival.cache_of("") == paths.cache()
            monkeypatch.delenv(name)
        assert arrival.cache_of("") == paths.cache() and arrival.cache_of("/chosen") == Path("/chosen")


def made(folder: Path) -> packages.Part:
    (folder / "a").mkdir(parents=True)
    (folder / "a/b.py").write_text("b = 1\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    files = {"a/b.py": folder / "a/b.py", "run": folder / "run"}
    return packages.Part(arrival.digest(files), files)


def stream(part: packages.Part) -> bytes:
    listed = [(name, path.stat().st_size, arrival.is_program(path)) for name, path in part.files.items()]
    return json.dumps({"files": listed}).encode() + b"\n" + b"".join(path.read_bytes() for path in part.files.values())


def send(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))


def test_only_who_has_the_key_of_the_run_reaches_its_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "CONNECT_LIMIT_S", 2.0)
    ours, other = (ssh_workers.own_security(dask_access.make_keys(dask_access.ALWAYS)) for _ in range(2))
    with ssh_workers._scheduler(ours) as address:
        with pytest.raises(UsageError, match="no worker"), dask.workers(address, ours):
            pass
        with pytest.raises(DnsrigError, match="certificate verify failed"), dask.workers(address, other):
            pass


def test_a_machine_that_was_restarted_is_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Connection("a", MachineDocument(ssh="a"), "")
    hello = {"python": [*sys.version_info[:2]]}
    told = [{"soabi": sysconfig.get_config_var("SOABI"), "root": True, "lacking": [], "boot": boot} for boot in "112"]
    monkeypatch.setattr(link, "answer", lambda limit_s: hello)
    monkeypatch.setattr(link, "send", lambda data: None)
    monkeypatch.setattr(link, "ask", lambda limit_s, **what: told.pop(0))
    for _ in range(2):
        link.greet([])
    with pytest.raises(DnsrigError, match="a was restarted"):
        link.greet([])


def test_a_worker_that_ends_waits_for_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_calls, "_ending", threading.Event())
    ended: list[float] = []
    with trial_calls._executing:
        waiting = threading.Thread(target=lambda: (trial_calls.end(10), ended.append(time.monotonic())))
        waiting.start()
        assert trial_calls._ending.wait(5) and not ended
        freed = time.monotonic()
    waiting.join(5)
    assert ended[0] >= freed


def test_trials_end_side_by_side() -> None:
    together = threading.Barrier(3, timeout=10)
    running: Any = [SimpleNamespace(end=together.wait) for _ in range(3)]
    runner._end(running)
    assert not together.broken and together.n_waiting == 0
