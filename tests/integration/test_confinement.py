"""Servers have no rights on the machine: what the kernel states of each process of each kind of server, while it
serves, and of each program of theirs that ends by itself."""

from __future__ import annotations

import itertools
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import pytest
from placement_data import placed

from dnsrig import confinement
from dnsrig.confinement import MACHINE, NET_ADMIN, NET_BIND_SERVICE, BindMount, Confinement
from dnsrig.lab import host as lab_host
from dnsrig.lab import process
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.procedures.context import placing
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import all_drivers, driver, sources
from dnsrig.servers.database import Database
from dnsrig.servers.placement import DNS_PORT, Placement, Zone

START_LIMIT_S = 60.0
ZONE = "confined.example"
ZONE_FILE = f"""\
$ORIGIN {ZONE}.
@ 3600 IN SOA ns hostmaster 1 3600 600 86400 300
@ 3600 IN NS ns
ns 3600 IN A 198.18.0.1
"""
KEEPS_MORE = {"nsd": {NET_ADMIN}, "unbound": {NET_ADMIN}}
"""What a unit of Debian leaves to a server beside the port (`Driver.capabilities`)."""
NOT_ALONE = {"world", "zones", "transfer"}
"""Parts of the engine that serve only what a trial makes; they are started as `echo` is."""
MAY_BE_WRITTEN = {"/dev", "/dev/shm", "/home", "/mnt", "/mnt/state", "/proc", "/root", "/run", "/tmp", "/var/tmp"}
MAY_BE_WRITTEN |= {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}
KINDS = sorted(set(all_drivers()) - NOT_ALONE)


def place(folder: Path, kind: str, address: str) -> Placement:
    server = all_drivers()[kind]
    name = f"{kind}@{server.only_source or 'forky'}"
    source = sources.find(name) or sources.install(name)
    role = next(role for role in ("primary", "resolver", "database", "frontend") if role in server.roles)
    made = placed(
        folder,
        kind,
        role,
        root=sources.root(source) or MACHINE,
        server=source,
        shown=sources.shown(source),
        address=address,
        other_address=None,
        secondaries=[],
        cpus=[0],
        zones=[Zone(ZONE, "zone")],
    )
    made.dataset.mkdir()
    (made.dataset / "zone").write_text(ZONE_FILE)
    return made


def start(host: Host, placement: Placement) -> process.Process:
    kind = driver(placement.source.kind)
    kind.configure(placement)
    log = placement.directory / "server.log"
    for step in kind.preparations(placement):
        output = placement.state / step.stdout if step.stdout else log
        with output.open("ab") as out, log.open("ab") as errors:
            assert _started(host, placement, step.command, out, errors).popen.wait(START_LIMIT_S) == 0, log.read_text()
    with log.open("ab") as output:
        started = _started(host, placement, kind.command(placement), output, output)
    started.stop_signal = kind.stop_signal
    return started


def _started(
    host: Host, placement: Placement, command: list[str], output: IO[bytes], errors: IO[bytes]
) -> process.Process:
    return process.start(
        command[0],
        host,
        sources.executable(placement.source, command),
        confined=placing.confinement(placement),
        workdir=driver(placement.source.kind).workdir(placement),
        stdout=output,
        stderr=errors,
    )


def wait_until_it_listens(host: Host, placement: Placement, started: process.Process) -> None:
    kind = driver(placement.source.kind)
    port = kind.port if isinstance(kind, Database) else DNS_PORT
    until = time.monotonic() + START_LIMIT_S
    while True:
        assert started.running and time.monotonic() < until, (placement.directory / "server.log").read_text()
        with suppress(OSError), lab_host.inside(host.namespace):
            socket.create_connection((str(placement.address), port), 1).close()
            return
        time.sleep(0.05)


def looked_at(pid: int) -> dict[str, str]:
    """Lines of /proc/PID/status by their names."""
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def writable(pid: int) -> set[str]:
    """Where its file systems can be written, whoever may."""
    fields = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    return {one[4] for one in fields if "rw" in one[5].split(",")}


def assert_confined(kind: str, pid: int, wanted: set[str], own: Mapping[str, Path]) -> None:
    """``wanted``: the capabilities that it may have; ``own``: the namespaces of this process."""
    status = looked_at(pid)
    assert {status["Uid"], status["Gid"]} == {"\t".join(["65534"] * 4)}, kind
    assert not status["Groups"].split() and status["NoNewPrivs"] == "1", kind
    for which in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert set(confinement.capabilities(int(status[which], 16))) <= wanted, (kind, which)
    assert all(Path(f"/proc/{pid}/ns/{name}").readlink() != space for name, space in own.items()), kind
    assert int(status["NSpid"].split()[-1]) != 1, f"{kind}: the first process would miss signals"
    assert writable(pid) <= MAY_BE_WRITTEN | ({"/mnt/server"} if kind == "echo" else set()), kind


def test_no_server_has_rights_on_the_machine(tmp_path: Path) -> None:
    """All kinds, side by side: user, capabilities, no_new_privs, namespaces, and what of the root can be written."""
    names = {kind: f"host{number}" for number, kind in enumerate(KINDS, start=1)}
    specs = {
        name: HostSpec(address=f"198.18.0.{number}", cpus=[0]) for number, name in enumerate(names.values(), start=1)
    }
    links = [LinkSpec(ends=ends) for ends in itertools.pairwise(names.values())]
    with Network(specs, links, directory=tmp_path) as network, ExitStack() as stack:
        placements = {kind: place(tmp_path / kind, kind, specs[name].address) for kind, name in names.items()}
        running = {}
        for kind, placement in placements.items():
            running[kind] = start(network.hosts[names[kind]], placement)
            stack.callback(running[kind].stop)
        own = {name: Path(f"/proc/self/ns/{name}").readlink() for name in ("pid", "mnt", "ipc", "uts", "net")}
        for kind, placement in placements.items():
            host = network.hosts[names[kind]]
            wait_until_it_listens(host, placement, running[kind])
            pids = lab_host.pids(host)
            assert running[kind].pid in pids, f"{kind}: the process that is known is the server"
            port = set() if isinstance(driver(kind), Database) else {NET_BIND_SERVICE}
            wanted = {*port, *KEEPS_MORE.get(kind, set())}
            for pid in pids:
                try:
                    assert_confined(kind, pid, wanted, own)
                except OSError:
                    assert pid != running[kind].pid, "only a child may have ended meanwhile, as some of PostgreSQL do"
            told = process.privileges(running[kind].pid)
            assert told is not None and set(told.capabilities) <= wanted and told.user == confinement.USER
            assert told.no_new_privileges and told.own_pid_namespace


LOOK = """
test "$(cat secret 2>&1)" = mine || echo wrong: secret
for file in /x /usr/x /home/x /root/x /mnt/server/x /proc/sys/kernel/hostname; do
    (echo x > $file) 2> /dev/null && echo wrong: $file
done
(ls /proc/1/root/ || ls /proc/1/cwd/) > /dev/null 2>&1 && echo wrong: the first process leads to the machine
test "$(ls -d /proc/[0-9]* | wc -l)" -lt 10 || echo wrong: processes of others
sleep 1000 &
echo x > written
kill -ABRT $$
"""


def test_a_program_is_alone_with_what_it_may_write(tmp_path: Path) -> None:
    """In the machine's own root file system, too: its processes are hidden, and it leaves none behind. A signal of its
    own ends it as that signal."""
    server, state = tmp_path / "server", tmp_path / "state"
    for folder in (server, state):
        folder.mkdir(mode=0o700)
    (state / "secret").write_text("mine")
    (state / "secret").chmod(0o600)
    (state / "link").symlink_to("/etc/shadow")
    before = Path("/etc/shadow").stat()
    binds = [BindMount(server, "/mnt/server", read_only=True), BindMount(state, "/mnt/state")]
    confined = Confinement(MACHINE, binds, [NET_BIND_SERVICE])
    specs = {"alone": HostSpec(address="198.18.0.1", cpus=[0])}
    with Network(specs, [], directory=tmp_path) as network, (tmp_path / "log").open("w") as log:
        started = process.start(
            "sh", network.hosts["alone"], ["sh", "-c", LOOK], confined=confined, workdir="/mnt/state", stdout=log
        )
        status = started.popen.wait(START_LIMIT_S)
        left = lab_host.pids(network.hosts["alone"])
        assert len(left) == 1, "what it left behind is still the host's"
    assert (status, (tmp_path / "log").read_text()) == (-signal.SIGABRT, "")
    assert (state / "written").stat().st_uid == confinement.USER
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)
    after = Path("/etc/shadow").stat()
    assert (before.st_uid, before.st_mode) == (after.st_uid, after.st_mode), "no link is followed"
    with confinement.as_user(state) as here:
        with pytest.raises(PermissionError):
            (here / "link").read_text()
        assert (here / "secret").read_text() == "mine"
    assert (state / "link").read_text(), "afterwards we may again what root may"


def test_what_a_program_prints_is_read_up_to_a_limit() -> None:
    confined = Confinement(MACHINE)
    words = ["sh", "-c", r"printf 'a\377'; echo b >&2; exit 3"]
    assert confinement.run_and_read(words, confinement=confined, limit_s=START_LIMIT_S) == (3, "a\ufffdb\n")
    _, text = confinement.run_and_read(["seq", "1000000"], confinement=confined, limit_s=START_LIMIT_S)
    assert len(text) == confinement.READ_MOST_BYTES
