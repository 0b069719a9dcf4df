"""Builds: what they are known by, whole or absent, kept below a limit, and how they fail. The script is not run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from repository_data import SCRIPT, SUITE, Tiny, commit, git, releases, tiny

from dnsrig import confinement
from dnsrig.confinement import Confinement
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.servers import debian
from dnsrig.servers.builds import build, errors, kept, repository
from dnsrig.servers.builds import checkout as builds_of_checkouts
from dnsrig.servers.builds.build import Plan
from dnsrig.servers.builds.errors import BuildFailed
from dnsrig.servers.builds.recipe import Method, root_packages
from dnsrig.servers.builds.reference import parse
from dnsrig.servers.builds.repository import Repository
from dnsrig.servers.sources import checkout, prefix
from dnsrig.servers.sources import git as source

TINY = Tiny()


class Script:
    """Plays `confinement.run`: what a build's script leaves behind."""

    def __init__(self, status: int = 0, says: str = "", program: str = "tiny") -> None:
        self.status, self.says, self.program = status, says, program
        self.during: Callable[[Path], None] = lambda made: None
        self.runs = 0
        self.environment: Mapping[str, str] = {}
        self.arguments: Sequence[str] = ()

    def __call__(self, command: Sequence[str], *, confinement: Confinement, output: IO[bytes], **how: object) -> int:
        folders = {one.seen: one.machine for one in confinement.binds}
        if build.WORK_SEEN not in folders:  # the program, asked for its version
            output.write(b"tiny 1.9.0\n")
            return 0
        self.runs += 1
        self.environment, self.arguments = how["environment"], command[3:]  # type: ignore[assignment]
        assert (folders[build.WORK_SEEN] / "source/tiny.c.in").exists()
        self.during(folders[build.SEEN])
        output.write(self.says.encode())
        (folders[build.SEEN] / "sbin").mkdir()
        (folders[build.SEEN] / "sbin" / self.program).write_text("a program")
        return self.status


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """A mirror of Tiny, a toolchain in the cache, and a script that succeeds."""
    releases(tmp_path / "mirrors/tiny", "1.9.0", "1.10.0")
    monkeypatch.setenv(repository.FOLDER_VARIABLE, str(tmp_path / "mirrors"))
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(repository, "_chosen", {})
    played = Script()
    monkeypatch.setattr(confinement, "run", played)
    monkeypatch.setattr(confinement, "own", lambda folder, user: None)
    monkeypatch.setattr(os, "chown", lambda *_, **__: None)
    monkeypatch.setattr(debian, "build", provided)
    return played


def provided(suite: str, name: str, packages: Sequence[str]) -> debian.Root:
    """Plays `debian.build`."""
    root = debian.folder(suite) / f"{name}-0123456789ab"
    (root / "usr/bin").mkdir(parents=True)
    (root / debian.RECORD).write_text(
        f'{{"suite": "{suite}", "layout": {debian.LAYOUT_VERSION}, "packages": {{"gcc": "12"}}}}'
    )
    return debian.Root(root, suite, {"gcc": "12"})


def builds() -> list[str]:
    """What lies in the folder of builds, but for its lock."""
    return sorted(path.name for path in kept.folder().iterdir() if path.name != ".lock")


def test_a_build_is_made_once(script: Script, tmp_path: Path) -> None:
    assert source.find(TINY, "git:v1.9.0") is None
    first = source.install(TINY, "git:v1.9.0")
    assert source.install(TINY, "git:v1.9.0") == first == source.find(TINY, "git:v1.9.0")
    assert script.runs == 1
    assert (first.version, first.source) == ("1.9.0", "git:v1.9.0")
    assert first.commit == git(tmp_path / "mirrors/tiny", "rev-parse", "v1.9.0")
    assert builds() == [first.key]
    assert (kept.folder() / first.key / kept.LOG).exists()
    assert source.installed(TINY) == [first]
    again = source.find(TINY, f"git:{first.commit}")
    assert again is not None and again.key == first.key, "whatever the commit is called"


def test_where_its_programs_are(script: Script) -> None:
    found = source.install(TINY, "git:v1.9.0")
    assert source.program(found, "tiny") == "/mnt/installed/sbin/tiny"
    assert source.program(found, "dig") == "dig", "of the root, by its search path"
    assert source.shown(found) == {"/mnt/installed": kept.folder() / found.key}
    root = source.root(found)
    assert root.parent == debian.folder(SUITE) and root.name.startswith("build-tiny-")


def test_a_program_elsewhere_is_none_of_its(script: Script, tmp_path: Path) -> None:
    (tmp_path / "built/sbin").mkdir(parents=True)
    (tmp_path / "built/sbin/tiny").symlink_to("/bin/sh")
    assert build.program_in(tmp_path / "built", "tiny") is None


def test_what_the_script_is_given(script: Script) -> None:
    source.install(TINY, "git:v1.9.0 --with-x='a b' --y")
    assert list(script.arguments) == ["--with-x=a b", "--y"]
    assert script.environment["CFLAGS"] == script.environment["CXXFLAGS"] == "-O2"
    assert script.environment["PREFIX"] == "/mnt/installed"
    assert script.environment["SOURCE_DATE_EPOCH"] == "1670846400"
    source.install(TINY, "git:v1.9.0 debug=symbols")
    assert script.environment["CFLAGS"] == "-O2 -g -fno-omit-frame-pointer"


def plan(tmp_path: Path, text: str = "git:v1.9.0") -> Plan:
    origin, wanted = Repository(tmp_path / "mirrors/tiny"), parse(text)
    root = debian.Root(tmp_path / "roots/one-1", SUITE, {})
    found = origin.resolve(wanted.ref)
    assert found is not None
    return Plan(TINY, TINY.recipe, wanted, origin, found, Method(SUITE, (), SCRIPT), root)


def test_a_build_is_known_by_all_that_it_depends_on(script: Script, tmp_path: Path) -> None:
    base = plan(tmp_path)
    others = [
        plan(tmp_path, "git:v1.10.0"),
        plan(tmp_path, "git:v1.9.0 --x"),
        plan(tmp_path, "git:v1.9.0 --x --y"),
        plan(tmp_path, "git:v1.9.0 debug=symbols"),
        replace(base, method=replace(base.method, script=SCRIPT + "true\n")),
        replace(base, root=replace(base.root, path=tmp_path / "roots/one-2")),
        replace(base, root=replace(base.root, suite="trixie")),
    ]
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1


def test_a_commit_with_the_same_files_is_the_same_build(script: Script, tmp_path: Path) -> None:
    commit(tmp_path / "mirrors/tiny", tiny("1.9.0") | {"notes": "1"}, tag="one", message="One")
    commit(tmp_path / "mirrors/tiny", {}, tag="two", message="Two")
    assert plan(tmp_path, "git:one").key == plan(tmp_path, "git:two").key


def test_the_toolchain_has_exactly_what_is_asked_for(script: Script) -> None:
    plain = source.root(source.install(TINY, "git:v1.9.0"))
    more = source.root(source.install(TINY, "git:v1.9.0 +libexample-dev"))
    other = source.root(source.install(TINY, "git:v1.9.0 suite=trixie"))
    assert len({plain.name, more.name, other}) == 3 and other.parent == debian.folder("trixie")
    assert root_packages(Method(SUITE, ("b", "a"), ""), ("c",)) == root_packages(Method(SUITE, ("a", "b", "c"), ""), ())


def test_a_build_that_fails_says_how(script: Script) -> None:
    script.status, script.says = 2, "checking for x\nconfigure: error: libgeography was not found\n"
    with pytest.raises(
        BuildFailed, match=r"tiny@git:v1.9.0 cannot be built: configure: error: .*\n  checking"
    ) as caught:
        source.install(TINY, "git:v1.9.0")
    assert caught.value.log.read_text() == script.says and str(caught.value.log) in caught.value.hint
    assert "its root has no libgeography" in caught.value.hint
    assert builds() == ["failed"] and source.find(TINY, "git:v1.9.0") is None
    script.status = 0
    assert source.install(TINY, "git:v1.9.0").version == "1.9.0", "it is tried again"


def test_only_a_release_has_its_number_alone(script: Script, tmp_path: Path) -> None:
    """Tiny says 1.9.0 here, whichever commit it is."""
    mirror = tmp_path / "mirrors/tiny"
    later = commit(mirror, tiny("1.11.0"), tag="v1.11.0-rc1", message="A release candidate")
    assert source.install(TINY, "git:v1.9.0").version == "1.9.0"
    between = source.install(TINY, "git:v1.10.0^")
    assert between.version == f"1.9.0 at {between.commit[:12]}"
    assert source.install(TINY, "git:v1.11.0-rc1").version == f"1.9.0 at {later[:12]}"
    assert source.install(TINY, "git:v1.10.0").version.startswith("1.9.0 at "), "its tag says another number"


@pytest.mark.parametrize("program", ["other", "tiny"])
def test_a_build_without_its_program(script: Script, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    script.program = program
    monkeypatch.setattr(Tiny, "version_pattern", r"tiny version (\S+)")
    why = r"does not tell its version: 'tiny 1\.9\.0'" if program == "tiny" else "has no tiny"
    with pytest.raises(BuildFailed, match=f"was built, but {why}"):
        source.install(TINY, "git:v1.9.0")
    assert builds() == ["failed"]


def test_a_build_that_never_ends(script: Script) -> None:
    def during(made: Path) -> None:
        raise subprocess.TimeoutExpired("sh", 1)

    script.during = during
    with pytest.raises(BuildFailed, match="it took longer than 2 h"):
        source.install(TINY, "git:v1.9.0")
    assert builds() == ["failed"]


@pytest.mark.parametrize(
    ("status", "says", "message"),
    [
        (1, "cc: error: x.o: No space left on device\nmake: *** [x] Error 1\n", "the disk is full"),
        (2, "g++: fatal error: Killed signal terminated program cc1plus\nmake: *** [x] Error 1\n", "was killed"),
        (137, "", "was killed"),
        (125, "dnsrig-engine: cannot bind /x\n", "cannot bind /x"),
        (-9, "", "was killed"),
    ],
)
def test_what_says_nothing_of_the_commit_is_no_failed_build(
    script: Script, status: int, says: str, message: str
) -> None:
    script.status, script.says = status, says
    with pytest.raises(DnsrigError, match=message) as caught:
        source.install(TINY, "git:v1.9.0")
    assert not isinstance(caught.value, BuildFailed) and caught.value.hint
    assert source.find(TINY, "git:v1.9.0") is None


def test_a_disk_with_little_room_is_told_before(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "LEAST_FREE_BYTES", 1 << 62)
    with pytest.raises(DnsrigError, match=r"a build needs .* GB of disk"):
        source.install(TINY, "git:v1.9.0")
    assert script.runs == 0 and builds() == []


def test_a_build_that_was_killed_in_the_middle_leaves_nothing(script: Script) -> None:
    def during(made: Path) -> None:
        raise KeyboardInterrupt

    script.during = during
    with pytest.raises(KeyboardInterrupt):
        source.install(TINY, "git:v1.9.0")
    assert builds() == []
    # As `kill -9` leaves it: files of a build, and nobody to remove them.
    left = kept.folder() / ".unfinished-x/made/sbin"
    left.mkdir(parents=True)
    assert source.installed(TINY) == []
    script.during = lambda made: None
    assert builds() == [".unfinished-x"] and builds() != [source.install(TINY, "git:v1.9.0").key]
    assert not left.exists()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("x.c:1:10: fatal error: uv.h: No such file or directory", "uv.h"),
        ('meson.build:3:0: ERROR: Dependency "liburcu" not found, tried pkgconfig', "liburcu"),
        ("No package 'libuv' found", "libuv"),
        ('meson.build:9:0: ERROR: Program "ragel" not found or not executable', "ragel"),
        ("ModuleNotFoundError: No module named 'yaml'", "yaml"),
        ("make[2]: ragel: No such file or directory", "ragel"),
        ("WARNING: 'flex' is missing on your system.", "flex"),
        ("configure: error: Could not find libnghttp2, nghttp2.h", "libnghttp2"),
        ("/usr/bin/ld: cannot find -lmaxminddb: No such file or directory", "maxminddb"),
        ("/mnt/build/script: 3: flex: not found", "flex"),
        ("configure: error: libfstrm not found", "libfstrm"),
        ("x.c:3:1: error: expected ';' before 'int'", ""),
        ("configure: WARNING: libidn2 not found", ""),
        ("Run-time dependency libsystemd found: NO (tried pkgconfig)", ""),
        ("configure.ac:798: error: required file 'tests/Makefile.in' not found", ""),
    ],
)
def test_what_a_root_lacks(line: str, found: str) -> None:
    assert errors.lacking([line]) == found


AUTOCONF = """\
checking for library that is not found... no
configure: WARNING: libidn2 not found
configure: error: Package requirements (gnutls >= 3.6.12) were not met:
Requested 'gnutls >= 3.6.12' but version of GnuTLS is 3.6.7
"""
MESON = """\
Run-time dependency libsystemd found: NO (tried pkgconfig)
Dependency gnutls found: NO. Found 3.3.29 but need: '>=3.4'
meson.build:33:0: ERROR: Dependency lookup for gnutls with method 'pkgconfig' failed: \
Invalid version, need 'gnutls' ['>=3.4'] found '3.3.29'.
"""
LINKER = """\
x.c:9:1: warning: 'error: not found' is a strange text
/usr/bin/ld: cannot find -lmaxminddb: No such file or directory
collect2: error: ld returned 1 exit status
make: *** [Makefile:9: x] Error 1
"""


@pytest.mark.parametrize(
    ("log", "line", "old"),
    [
        (AUTOCONF, "configure: error: Package requirements", "gnutls >= 3.6.12, and its root has 3.6.7"),
        (MESON, "meson.build:33:0: ERROR: ", "gnutls >= 3.4, and its root has 3.3.29"),
        (LINKER, "/usr/bin/ld: cannot find -lmaxminddb", ""),
        ("checking for x... not found\nmake: *** [x] Error 1\n", "make: *** [x] Error 1", ""),
    ],
)
def test_which_line_tells_the_cause(log: str, line: str, old: str) -> None:
    assert errors.cause(log.splitlines()).startswith(line)
    assert errors.too_old(log.splitlines()) == old


def test_a_library_that_is_too_old_is_told(script: Script) -> None:
    script.status, script.says = 1, AUTOCONF
    with pytest.raises(BuildFailed, match="Package requirements") as caught:
        source.install(TINY, "git:v1.9.0")
    assert "it needs gnutls >= 3.6.12, and its root has 3.6.7: suite=trixie" in caught.value.hint


def test_what_a_log_shows_is_plain_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * errors.READ_BYTES + b"\n\x1b[31merror: \xff\x00 here\x1b[0m\n\n")
    assert errors.end_of(log)[-1] == "[31merror: \ufffd here[0m"
    assert "error: " in str(errors.explain("tiny@git:v1", 1, log).message)


def used(key: str, ago_s: float) -> None:
    record = kept.folder() / key / kept.RECORD
    when = record.stat().st_mtime - ago_s
    os.utime(record, (when, when))


def test_the_longest_unused_builds_go_first(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["v1.9.0", "v1.9.0 --a", "v1.9.0 --b", "v1.9.0 --c"]
    one, two, three, four = (source.install(TINY, f"git:{name}").key for name in names)
    size = kept.read(one).size_bytes  # type: ignore[union-attr]
    for key, ago_s in ((one, 9000), (two, 20_000), (three, 10_000), (four, 60)):
        used(key, ago_s)
    assert source.find(TINY, "git:v1.9.0 --b") is not None, "now it is the last one used"
    monkeypatch.setenv(kept.LIMIT_VARIABLE, f"{size * 2.5 / 1e9:.9f}")
    assert kept.make_room(four) == [two, one]
    assert builds() == sorted([three, four])
    monkeypatch.setenv(kept.LIMIT_VARIABLE, "0")
    assert kept.make_room(four) == [], "what may be in use stays"
    used(three, 5000)
    used(four, 5000)
    assert kept.make_room(four) == [three], "and so does the newest"


def test_a_new_build_makes_room(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    old = source.install(TINY, "git:v1.9.0")
    used(old.key, 5000)
    monkeypatch.setenv(kept.LIMIT_VARIABLE, "0")
    new = source.install(TINY, "git:v1.10.0")
    assert builds() == [new.key] and source.find(TINY, "git:v1.9.0") is None
    with pytest.raises(DnsrigError, match="is missing in") as caught:
        source.root(old)
    assert f"'tiny@git:{old.commit}'" in caught.value.hint


def test_a_limit_that_is_no_number(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.LIMIT_VARIABLE, "much")
    with pytest.raises(UsageError, match="DNSRIG_BUILDS_GB=much is not a number"):
        source.install(TINY, "git:v1.9.0")
    assert script.runs == 0


def test_logs_of_failed_builds_are_few(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_FAILED_LOGS", 2)
    script.status = 1
    for option in "abcd":
        with pytest.raises(BuildFailed):
            source.install(TINY, f"git:v1.9.0 --{option}")
    script.status = 0
    source.install(TINY, "git:v1.9.0")
    assert len(list((kept.folder() / "failed").iterdir())) == 2


def test_a_root_that_went_is_made_again(script: Script) -> None:
    found = source.install(TINY, "git:v1.9.0")
    (source.root(found) / debian.RECORD).unlink()
    source.root(found).rename(source.root(found).with_name("away"))
    assert source.find(TINY, "git:v1.9.0") is None
    assert source.install(TINY, "git:v1.9.0") == found


def test_without_root_nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (tmp_path / "log").open("wb") as log, pytest.raises(DnsrigError, match="needs root"):
        confinement.run(["true"], confinement=Confinement(tmp_path), environment={}, output=log, limit_s=1)


@pytest.fixture
def checked_out(script: Script, tmp_path: Path) -> Path:
    """A clone in which one file is changed, one is new, and one is ignored."""
    place = tmp_path / "my checkout"
    git(tmp_path, "clone", "--quiet", str(tmp_path / "mirrors/tiny"), str(place))
    (place / ".gitignore").write_text("*.o\n")
    (place / "tiny.o").write_text("left out")
    (place / "tiny.c.in").write_text("changed")
    return place


def state_of(folder: Path) -> dict[Path, tuple[bytes, int]]:
    """Content and time of each file. git marks objects that are still in use by their time."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), 0 if "objects" in path.parts else path.stat().st_mtime_ns) for path in files}


def test_a_checkout_is_built_with_its_changes(script: Script, checked_out: Path) -> None:
    before = state_of(checked_out)
    name = f"tiny@{checked_out}"
    head = git(checked_out, "rev-parse", "HEAD")
    assert checkout.takes(str(checked_out)) and not prefix.takes(str(checked_out))
    assert checkout.find(TINY, str(checked_out)) is None
    found = checkout.install(TINY, str(checked_out))
    assert found.name == name and found.prefix is None
    assert found.commit.startswith(f"{head}+changes.")
    assert found.version == f"1.9.0 at {head[:12]}+changes.{found.commit.rpartition('.')[2]}"
    assert checkout.find(TINY, str(checked_out)) == found == checkout.install(TINY, str(checked_out))
    assert script.runs == 1
    assert checkout.root(found).name.startswith("build-tiny-")
    assert state_of(checked_out) == before, "nothing is written there"
    (checked_out / "tiny.c.in").write_text("changed again")
    other = checkout.install(TINY, str(checked_out))
    assert other.key != found.key and other.version != found.version and script.runs == 2


def test_what_is_in_the_copy_of_a_checkout(script: Script, checked_out: Path) -> None:
    (checked_out / "new.c").write_text("new")
    taken = builds_of_checkouts.take(checked_out)
    copy = checked_out.parent / "copy"
    taken.repository.check_out(taken.commit, copy)
    assert (copy / "tiny.c.in").read_text() == "changed" and (copy / "new.c").read_text() == "new"
    assert not (copy / "tiny.o").exists()
    assert builds_of_checkouts.take(checked_out) == taken, "the same files are the same commit"
    assert taken.repository.describe(taken.commit, "v*") == "v1.10.0"
    git(checked_out, "checkout", "--quiet", ".")
    for name in (".gitignore", "new.c"):
        (checked_out / name).unlink()
    (checked_out / "tiny.o").unlink()
    clean = builds_of_checkouts.take(checked_out)
    assert clean.commit == clean.head and not clean.changes and not clean.label


def test_build_options_of_a_checkout(script: Script, checked_out: Path) -> None:
    name = checkout.with_options(str(checked_out), "--with-x +libx-dev", symbols=True)
    assert name == f"'{checked_out}' +libx-dev debug=symbols --with-x"
    assert checkout.takes(name)
    found = checkout.install(TINY, name)
    assert found.source == name and list(script.arguments) == ["--with-x"]
    assert checkout.with_options(str(checked_out), "", symbols=False) == str(checked_out)


def test_what_is_no_checkout(script: Script, checked_out: Path, tmp_path: Path) -> None:
    (checked_out / "sbin").mkdir()
    assert not checkout.takes(str(checked_out)), "a server is installed in it"
    git(tmp_path, "init", "--quiet", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match="has no commit"):
        checkout.install(TINY, str(tmp_path / "empty"))
    commit(tmp_path / "other", {"a": "b"})
    with pytest.raises(UsageError, match=r"other: commit .* is not Tiny"):
        checkout.install(TINY, str(tmp_path / "other"))
