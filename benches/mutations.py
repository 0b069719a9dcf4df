"""What the tests notice: the code is broken in twenty places, one at a time, and the tests of that part are run.

    .venv/bin/python benches/mutations.py [--full] [NUMBER ...]

Works in a copy of the last commit, so the work tree does not change. Of the tests that a place names, it runs those of
`make test`, or with ``--full`` those of `make test-full`. The exit status is 1 if too few places were noticed: at least
18 of 20 must be, and all of them with ``--full`` or when NUMBERs are given. For each place in the engine, the tests of
the engine are built again, which takes half a minute. Places with real servers need root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FEWEST_NOTICED = 18
ENGINE = "engine/dnsrig-engine/src/"
DNS = "engine/dnsrig-dns/src/"
TARGET = ROOT / "engine/target/mutations"
TEST_UNITS = "cargo test --quiet --release --workspace --lib --config checked.toml"
PYTEST = f"{sys.executable} -m pytest -x -p no:cacheprovider"
LIMIT_S = 900
QUICKEST = "dnsrig/experiment/trial_specs.py"
"""The place of the smoke run."""


@dataclass(frozen=True)
class Place:
    """Where ``file`` is broken: ``old`` becomes ``new``."""

    file: str
    old: str
    new: str
    tests: str
    """Arguments of pytest, or of `cargo test --lib` for a file of the engine."""


PLACES = [
    Place(
        "dnsrig/stats/statistics.py",
        "(self.percent < 100) == (self.better",
        "(self.percent > 100) == (self.better",
        "tests/unit/test_statistics.py tests/unit/test_compare.py",
    ),
    Place(
        "dnsrig/comparison/run_differences.py",
        '("dataset.key", "next_dataset.key",',
        '("links", "dataset.key", "next_dataset.key",',
        "tests/unit/test_run_differences.py",
    ),
    Place(
        "dnsrig/traps/cpu_contention.py",
        "foreign <= FOREIGN_SHARE and not others",
        "not others",
        "tests/unit/test_trap_logic.py tests/integration/test_traps_provoked.py -k contention",
    ),
    Place(
        "dnsrig/traps/idle_wait.py",
        "if waited_s < LARGEST_SHARE * whole_s:",
        "if waited_s >= 0:",
        "tests/unit/test_trap_logic.py tests/integration/test_traps_provoked.py -k wait",
    ),
    Place(
        "dnsrig/traps/coarse_log_clock.py",
        "resolution_s <= LARGEST_SHARE * time_s",
        "resolution_s > 0",
        "tests/unit/test_trap_logic.py tests/integration/test_traps_provoked.py -k coarse",
    ),
    Place(
        "dnsrig/traps/congestion_on_receiver.py",
        "if of_receiver is None or flow.congestion == of_receiver:",
        "if of_receiver is not None:",
        "tests/unit/test_trap_paths.py tests/unit/test_trap_sockets.py tests/integration/test_path_traps.py -k congestion",
    ),
    Place(
        "dnsrig/lab/ledger.py",
        "                fcntl.flock(handle, fcntl.LOCK_EX)\n",
        "",
        "tests/unit/test_lab.py",
    ),
    Place(
        "dnsrig/lab/removal.py",
        "        shutil.rmtree(folder, ignore_errors=True)\n        if os.path.lexists(folder):\n            left.append(str(folder))\n",
        "        pass\n",
        "tests/unit/test_lab.py tests/integration/test_removal.py -k interrupt",
    ),
    Place(
        "dnsrig/lab/links/selftest.py",
        "lost, early = arrived.count(None),",
        "lost, early = 0,",
        "tests/unit/test_links.py tests/integration/test_links.py",
    ),
    Place(
        "dnsrig/experiment/trial_specs.py",
        "        shuffler.shuffle(round_)\n",
        "",
        "tests/unit/test_trial_specs.py",
    ),
    Place(
        "dnsrig/experiment/trial.py",
        "    if directory.exists():\n        raise DnsrigError(",
        "    if False:\n        raise DnsrigError(",
        "tests/unit/test_runner.py tests/integration/test_removal.py -k overwritten",
    ),
    Place(
        "dnsrig/report/page.py",
        "autoescape=True",
        "autoescape=False",
        "tests/report/test_page.py",
    ),
    Place(
        "dnsrig/servers/bind/named.conf.j2",
        '{{ "yes" if transfer.ixfr else "no" }}',
        "no",
        "tests/unit/test_servers.py tests/integration/test_update.py -k bind",
    ),
    Place(
        "dnsrig/servers/bind/named.conf.j2",
        '''"none" if role == "secondary" else 'key "' + tsig.name + '"' if transfer.tsig else "any"''',
        '"any"',
        "tests/unit/test_servers.py tests/integration/test_transports.py -k 'key or bind'",
    ),
    Place(
        ENGINE + "load/in_flight.rs",
        "Ended { due_ns, sent_ns, ended_ns, lower_ns, end }",
        "Ended { due_ns: sent_ns, sent_ns, ended_ns, lower_ns, end }",
        "load::",
    ),
    Place(
        DNS + "serial.rs",
        "Serial(serial) > Serial(than)",
        "serial > than",
        "serial",
    ),
    Place(
        ENGINE + "propagation/core.rs",
        "serial == change.serial || is_newer(serial, change.serial)",
        "serial == change.serial",
        "propagation::",
    ),
    Place(
        DNS + "framing.rs",
        "            if self.missing_bytes() == 0 {\n                each",
        "            if self.missing_bytes() <= 1 {\n                each",
        "framing",
    ),
    Place(
        DNS + "tsig/sign.rs",
        "(&variables.fudge);\n        context.update(&variables.error);",
        "(&variables.error);",
        "tsig",
    ),
    Place(
        ENGINE + "link/delay_queue.rs",
        "self.waiting.len() >= self.spec.limit_packets",
        "self.waiting.len() > self.spec.limit_packets",
        "link::",
    ),
]


def main() -> int:
    from smoke import parser, sized  # not above: a test imports this module for `PLACES` alone

    every = range(1, len(PLACES) + 1)
    smallest = [number for number in every if PLACES[number - 1].file == QUICKEST]
    asking = parser(__doc__)
    asking.add_argument("--full", action="store_true", help="run what `make test-full` runs")
    asking.add_argument("numbers", nargs="*", type=int, metavar="NUMBER", help="places (default: all)")
    asked = asking.parse_args()
    chosen = asked.numbers or sized([*every], smoke=smallest)
    with copy_of_last_commit() as copy:
        noticed = [report(number, PLACES[number - 1], copy, asked.full) for number in chosen]
    print(f"{sum(noticed)} of {len(noticed)} noticed")
    fewest = len(noticed) if asked.full or len(noticed) < len(PLACES) else FEWEST_NOTICED
    return 0 if sum(noticed) >= fewest else 1


@contextmanager
def copy_of_last_commit() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dnsrig-mutations-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(copy)], cwd=ROOT, check=True)
        try:
            yield copy
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(copy)], cwd=ROOT, check=True)


@contextmanager
def replaced(path: Path, text: str) -> Iterator[None]:
    """Replace the content of the file ``path`` by ``text`` within the context."""
    whole = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(whole)


def execute(command: str, copy: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
    """The result of a test command of the copy; commands of cargo begin in its folder ``engine``."""
    is_cargo = command.startswith("cargo")
    environment = {
        "PYTHONPATH": str(copy),
        "CARGO_TARGET_DIR": str(TARGET),
        "RUST_TEST_THREADS": "6",
        "DNSRIG_ROOT_TESTS": "1",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=copy / "engine" if is_cargo else copy,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )


def report(number: int, place: Place, copy: Path, full: bool) -> bool:
    """Break the copy, test it, and restore it."""
    path = copy / place.file
    whole = path.read_text()
    assert whole.count(place.old) == 1, (
        f"{place.file} has changed: {place.old!r} is there {whole.count(place.old)} times"
    )
    with replaced(path, whole.replace(place.old, place.new)):
        noticed, by = tested(place, copy, full)
    print(f"{number:2} {'noticed' if noticed else 'MISSED '} {place.file}: {by}", flush=True)
    return noticed


def tested(place: Place, copy: Path, full: bool) -> tuple[bool, str]:
    """Whether a test fails, and which one does first."""
    if place.file.startswith("engine/"):
        command = f"{TEST_UNITS} {place.tests}"
    else:
        suite = "root or not root" if full else "not full"
        command = f"{PYTEST} -m '{suite}' {place.tests}"
    result = execute(command, copy, LIMIT_S)
    failed = [
        line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "    ")) and "::" in line
    ]
    assert result.returncode == 0 or failed or "panicked" in result.stdout, result.stdout + result.stderr
    return result.returncode != 0, failed[0].strip() if failed else ""


if __name__ == "__main__":
    sys.exit(main())
