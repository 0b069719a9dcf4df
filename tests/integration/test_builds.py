"""Servers built from a repository: in a root file system, without network and rights, whole or absent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import DNSRIG
from repository_data import Tiny, commit, git, releases

from dnsrig import confinement, paths
from dnsrig.confinement import BindMount, Confinement
from dnsrig.runs.trial import Trial
from dnsrig.servers import sources
from dnsrig.servers.builds import kept, repository
from dnsrig.servers.builds.errors import BuildFailed
from dnsrig.servers.sources import checkout
from dnsrig.servers.sources import git as source

pytestmark = pytest.mark.servers

TINY = Tiny()
LOOK = """\
id
cat /proc/net/dev /proc/self/status
ls /mnt /home 2>&1
touch /usr/x /mnt/build/mine 2>&1
sh -c 'sleep 1000' &
"""

BUILD_FOREVER = """\
from dataclasses import replace

from repository_data import SUITE, Method, Tiny

from dnsrig.servers.sources import git

Tiny.recipe = replace(Tiny.recipe, method=lambda tree: Method(SUITE, (), "echo begun; sleep 900"))
git.install(Tiny(), "git:v1.9.0")
"""


MIRRORS = os.environ.get(repository.FOLDER_VARIABLE, "")
needs_mirrors = pytest.mark.skipif(
    not MIRRORS, reason=f"{repository.FOLDER_VARIABLE} names no folder with mirrors of the servers' repositories"
)


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tiny's repository, and a cache of our own but for the root file systems."""
    cache, own = paths.cache(), tmp_path / "cache"
    own.mkdir()
    for shared in ("roots", "apt"):
        (cache / shared).mkdir(parents=True, exist_ok=True)
        (own / shared).symlink_to(cache / shared)
    releases(tmp_path / "mirrors/tiny", "1.9.0", "1.10.0")
    monkeypatch.setenv("DNSRIG_CACHE", str(own))
    monkeypatch.setenv(repository.FOLDER_VARIABLE, str(tmp_path / "mirrors"))
    monkeypatch.setattr(repository, "_chosen", {})
    return tmp_path / "mirrors/tiny"


@pytest.mark.full
def test_two_versions_are_built_and_told_apart(origin: Path) -> None:
    old, new = (source.install(TINY, f"git:v{version} --fast") for version in ("1.9.0", "1.10.0"))
    assert (old.version, new.version) == ("1.9.0", "1.10.0")
    assert old.fingerprint != new.fingerprint and old.key != new.key
    built = kept.folder() / old.key
    assert {path.stat().st_uid for path in built.rglob("*")} == {os.geteuid()}
    assert "tiny 1.9.0 with --fast" in (built / "sbin/tiny").read_bytes().decode(errors="replace")
    assert not list(kept.folder().glob(".unfinished*")) and any(kept.ccache().iterdir())


@pytest.mark.full
def test_a_checkout_with_its_changes(origin: Path) -> None:
    """Really compiled, from a copy."""
    source_file = origin / "tiny.c.in"
    source_file.write_text(source_file.read_text().replace("1.10.0", "1.11.0"))
    found = checkout.install(TINY, str(origin))
    assert found.version.startswith("1.11.0 at ") and "+changes." in found.version
    built = (kept.folder() / found.key / "sbin/tiny").read_bytes().decode(errors="replace")
    assert "tiny 1.11.0" in built and not (origin / "tiny").exists()
    assert sources.unchanged(found)


@pytest.mark.full
@needs_mirrors
@pytest.mark.timeout(3600)
def test_a_checkout_of_bind_with_a_change(measure, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    place = tmp_path / "bind9"
    mirror = next(path for path in (Path(MIRRORS, "bind9"), Path(MIRRORS, "bind9.git")) if path.is_dir())
    git(tmp_path, "clone", "--quiet", "--branch=v9.18.10", str(mirror), str(place))
    main = place / "bin/named/main.c"
    main.write_text(main.read_text() + "/* changed */\n")
    record = measure(f'server="bind@{place}"', "zones=20").record
    assert record.outcome == "done", record.reason
    assert "+changes." in record.spec.hosts["secondary"].server.version


@pytest.mark.full
def test_what_cannot_be_built(origin: Path) -> None:
    commit(origin, {"tiny.c.in": "int main(void) { return nothing; }\n"}, tag="v2.0.0")
    with pytest.raises(BuildFailed, match="'nothing' undeclared") as caught:
        source.install(TINY, "git:v2.0.0")
    assert "'nothing' undeclared" in caught.value.log.read_text()
    with pytest.raises(BuildFailed, match="libgeography was not found") as caught:
        source.install(TINY, "git:v1.9.0 --with-geography")
    assert "+libexample-dev" in caught.value.hint


def test_a_build_is_alone(origin: Path, tmp_path: Path) -> None:
    """It sees no network, no process and no file of the machine's, has no rights, and leaves no process."""
    found = source.install(TINY, "git:v1.9.0")
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, confinement.USER, confinement.USER)
    with (tmp_path / "log").open("wb") as log:
        status = confinement.run(
            ["sh", "-c", LOOK],
            confinement=Confinement(source.root(found), [BindMount(work, "/mnt/build")]),
            environment={"PATH": "/usr/bin"},
            output=log,
            limit_s=20,
        )
    said = (tmp_path / "log").read_text()
    assert status == 0 and "uid=65534" in said
    assert "veth" not in said and "eth0" not in said
    assert "CapBnd:\t0000000000000000" in said and "NoNewPrivs:\t1" in said
    assert "touch: cannot touch '/usr/x': Read-only file system" in said
    assert [path.name for path in work.iterdir()] == ["mine"]
    assert not any(b"sleep\x001000" in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))


@pytest.mark.full
def test_killed_in_the_middle(origin: Path, tmp_path: Path) -> None:
    """As by `kill -9`: no process goes on, and the next build finds the cache whole."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", BUILD_FOREVER], env=environment) as child:
        deadline = time.monotonic() + 120
        while not any("begun" in log.read_text() for log in kept.folder().glob(f".unfinished-*/*/{kept.LOG}")):
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.1)
        child.send_signal(signal.SIGKILL)
    until_gone_s = time.monotonic() + 20
    while any(b"sleep\x00900" in _command(path) for path in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < until_gone_s
        time.sleep(0.1)
    assert source.installed(TINY) == []
    assert source.install(TINY, "git:v1.9.0").version == "1.9.0"
    assert not list(kept.folder().glob(".unfinished*"))


def _command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.full
@needs_mirrors
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name",
    [
        "bind@git:v9.18.10",
        "knot@git:v3.4.8",
        "nsd@git:NSD_4_8_0_REL debug=symbols",
        "powerdns@git:auth-4.9.4",
    ],
    ids=lambda name: name.partition("@")[0],
)
def test_a_real_server_in_an_experiment(measure, name: str) -> None:  # type: ignore[no-untyped-def]
    kind, _, _ = name.partition("@")
    trial: Trial = measure(f'server="{name}"', "zones=20", f'hosts.primary.server="{name}"')
    record = trial.record
    assert record.outcome == "done", record.reason
    assert {server.server.kind for server in record.servers.values()} == {kind}
    assert all(server.command[0].startswith("/mnt/installed/") for server in record.servers.values())
    found = sources.find(name)
    assert found is not None and {server.server.commit for server in record.servers.values()} == {found.commit}


def test_the_command_builds_a_range(origin: Path) -> None:
    done = subprocess.run(
        [*DNSRIG, "servers", "install", "nsd@git:v1.9.0", "--repository", f"nsd={origin}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "is not NSD, or too old to be built: it has no nsd.c" in done.stderr
