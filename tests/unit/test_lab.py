"""The parts of the lab that can be tested without making anything."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.lab import cgroup, clock, conditions, ledger, network, process, removal
from dnsrig.lab.host import set_sysctl
from dnsrig.rundir import LinkSpec

HYBRID = """\
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""


def test_hybrid_machine() -> None:
    found = cgroup.hierarchies(HYBRID)
    v1 = [(1, ("cpuacct",)), (1, ("cpuset",)), (1, ("memory",))]
    assert [(tree.version, tree.controllers) for tree in found] == [*v1, (2, ())]
    assert cgroup.folders("tag", "host", found)[3] == Path("/sys/fs/cgroup/unified/dnsrig/tag/host")


def test_v2_machine() -> None:
    assert [t.version for t in cgroup.hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")] == [2]


@pytest.mark.parametrize(
    "name", ["kernel.pid_max", "net", "net.ipv4.x/../../../kernel.pid_max", "net..x", "vm.swappiness"]
)
def test_only_sysctls_of_a_namespace(name: str) -> None:
    with pytest.raises(UsageError, match="is not a sysctl of a host"):
        set_sysctl(name, "1")


@pytest.fixture
def ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ledger, "FOLDER", tmp_path)
    return tmp_path


def test_ledger_lives_as_long_as_its_lock(ledgers: Path) -> None:
    mine = ledger.Ledger.open_new()
    mine.add(network_namespace="dnsrig-x-primary")
    assert ledger.live() == [mine.tag]
    assert list(ledger.dead()) == []
    fcntl.flock(mine.handle, fcntl.LOCK_UN)
    (found,) = ledger.dead()
    assert found.network_namespaces == ["dnsrig-x-primary"]
    found.close()
    assert list(ledgers.iterdir()) == []
    os.close(mine.handle)


@pytest.mark.parametrize("lives", [True, False])
def test_a_user_leaves_the_trials_of_root_alone(ledgers: Path, monkeypatch: pytest.MonkeyPatch, lives: bool) -> None:
    """The ledgers of root are there to be read, not to be written."""
    roots = ledger.Ledger.open_new()
    if not lives:
        fcntl.flock(roots.handle, fcntl.LOCK_UN)
    open_ = os.open

    def refused(path: Path, flags: int, *more: int) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(path)
        return open_(path, flags, *more)

    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert removal.clean() == ([], [] if lives else [f"what trial {roots.tag} left, which takes root"])
    assert ledger.live() == ([roots.tag] if lives else [])
    os.close(roots.handle)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EINVAL])
def test_a_cgroup_that_cannot_be_written_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(folder: Path, **_: object) -> None:
        raise OSError(number, os.strerror(number), str(folder))

    monkeypatch.setattr(Path, "mkdir", refused)
    writable = number == errno.EINVAL
    with pytest.raises(OSError if writable else DnsrigError) as caught:
        cgroup.make(tmp_path / cgroup.PARENT / "aaaaa" / "primary")
    if isinstance(caught.value, DnsrigError):
        assert "the cgroup" in caught.value.message and "writable cgroup tree" in caught.value.hint


def test_tags_begin_as_told(ledgers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ledger.TAG_START, "abc")
    tags = {ledger.Ledger.open_new().tag for _ in range(20)}
    assert len(tags) == 20
    assert {(tag[:3], len(tag)) for tag in tags} == {("abc", 5)}


def test_the_last_host_takes_the_empty_parents_with_it(tmp_path: Path) -> None:
    one, other = (tmp_path / cgroup.PARENT / tag / "primary" for tag in ("aaaaa", "bbbbb"))
    cgroup.make(one)
    cgroup.make(other)
    assert cgroup.remove(one)
    assert [path.name for path in (tmp_path / cgroup.PARENT).iterdir()] == ["bbbbb"], "another trial's"
    assert cgroup.remove(other)
    assert list(tmp_path.iterdir()) == []


def test_ledger_appears_locked(ledgers: Path) -> None:
    """Whoever looks for dead trials while ledgers are being made never sees one that is not locked."""
    for _ in range(50):
        mine = ledger.Ledger.open_new()
        assert list(ledger.dead()) == []
        mine.close()
    assert list(ledgers.iterdir()) == []


def test_damaged_ledger_lists_nothing(ledgers: Path) -> None:
    (ledgers / "aaaaa.json").write_text('{"pid": 1, "network_na')
    (found,) = ledger.dead()
    assert (found.network_namespaces, found.cgroups) == ([], [])
    os.close(found.handle)


def test_ledger_never_lists_what_is_not_ours(ledgers: Path) -> None:
    content = {"pid": 1, "network_namespaces": ["somebody-elses", "dnsrig-aaaaa-primary"], "cgroups": []}
    (ledgers / "aaaaa.json").write_text(json.dumps(content))
    (found,) = ledger.dead()
    assert found.network_namespaces == ["dnsrig-aaaaa-primary"]
    os.close(found.handle)


def test_anchor_reads_both_clocks() -> None:
    first, second = clock.anchor(), clock.anchor()
    assert 0 <= first.error_ns < 10**9
    assert second.monotonic_ns >= first.monotonic_ns


def test_snapshot_can_be_stored() -> None:
    snapshot = conditions.snapshot()
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert snapshot["kernel"] == os.uname().release


def test_folders_of_a_dead_ledger_are_only_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a ledger says to remove is believed only of folders that can be dnsrig's."""
    monkeypatch.setattr(ledger, "FOLDER", tmp_path)
    monkeypatch.setattr(ledger, "MEMORY", tmp_path / "shm")
    mine = ledger.Ledger.open_new()
    for folder in ("shm/dnsrig-abcde", "shm/somebody", "dnsrig-elsewhere", "shm/dnsrig-x/../../etc"):
        mine.add(folder=str(tmp_path / folder))
    os.close(mine.handle)
    (found,) = ledger.dead()
    assert found.folders == [str(tmp_path / "shm/dnsrig-abcde")]
    os.close(found.handle)


def test_an_interrupt_while_links_end_leaves_nothing(ledgers: Path) -> None:
    class Slow:
        began_s = 0.0

        def check(self) -> None: ...

        def finish(self) -> None:
            raise KeyboardInterrupt

    made = network.Network({}, [])
    with pytest.raises(KeyboardInterrupt), made:
        folder = made.folder_in_memory(0) if os.path.ismount(ledger.MEMORY) else None
        made.made.append((LinkSpec(ends=("a", "b")), Slow()))
    assert list(ledgers.iterdir()) == [], "its ledger is closed, for nothing is left"
    assert folder is None or not folder.exists()


def test_a_v1_cpuset_gets_its_cpus_and_what_lies_above_it_those_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / cgroup.PARENT / "aaaaa" / "primary"
    for level in (tmp_path, folder.parent.parent, folder.parent, folder):
        level.mkdir(exist_ok=True)
        for name in (cgroup.CPUS, cgroup.MEMORY_NODES):
            (level / name).write_text("\n")
    (tmp_path / cgroup.CPUS).write_text("0-3\n")
    (tmp_path / cgroup.MEMORY_NODES).write_text("0\n")
    for _ in range(2):
        cgroup.make(folder, [1, 2])
    levels = (folder.parent.parent, folder.parent, folder)
    assert [(level / cgroup.CPUS).read_text() for level in levels] == ["0-3", "0-3", "1,2"]
    assert [(level / cgroup.MEMORY_NODES).read_text() for level in levels] == ["0", "0", "0"]


def test_v2_passes_controllers_on_to_the_host_and_not_below_it(tmp_path: Path) -> None:
    folder = tmp_path / cgroup.PARENT / "aaaaa" / "primary"
    folder.mkdir(parents=True)
    levels = (tmp_path, folder.parent.parent, folder.parent, folder)
    for level in levels:
        (level / "cgroup.subtree_control").touch()
    cgroup.make(folder)
    assert [bool((level / "cgroup.subtree_control").read_text()) for level in levels] == [False, True, True, False]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("exit 0", "exited with status 0"),
        ("exit 3", "exited with status 3"),
        ("kill -KILL $$", "was ended by SIGKILL"),
        ("kill -HUP $$", "was ended by SIGHUP"),
    ],
)
def test_how_a_program_ended_is_said_by_its_status_or_its_signal(command: str, says: str) -> None:
    popen = subprocess.Popen(["sh", "-c", command], text=True)
    popen.wait()
    ended = process.Process("sh", "primary", ["sh"], popen)
    assert (ended.running, ended.how_it_ended()) == (False, says)


def test_a_program_that_runs_is_said_to_and_is_stopped_once(tmp_path: Path) -> None:
    started = process.Process("cat", "primary", ["cat"], subprocess.Popen(["cat"], stdin=subprocess.PIPE, text=True))
    assert (started.running, started.how_it_ended(), started.exec_ns()) == (True, "is still running", None)
    started.stop()
    assert (started.running, started.stopped_by_us, started.how_it_ended()) == (False, True, "was ended by SIGTERM")
    started.stopped_by_us = False
    started.stop()
    assert not started.stopped_by_us, "it had ended"
    for text, expected in (("", None), ('{"exec_monotonic_ns": 17}', 17)):
        (tmp_path / "stamp").write_text(text)
        started.stamp_file = tmp_path / "stamp"
        assert started.exec_ns() == expected
