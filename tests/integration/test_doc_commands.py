"""The commands in the docs work: each page's console blocks are run in order, in an empty folder.

`make test` plans what a newcomer reads first, and takes one of the other pages, another one each day; `make test-full`
takes all. The tests run as root, so `sudo` is left out. A command that ends with ``&`` goes on in the background until
the page is done.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import others
import pytest
from suites import in_turn

from dnsrig.cli._exits import EXIT_NO_VALID_TRIAL

ROOT = Path(__file__).parents[2]
SHORT = [
    "docs/how-to/clocks.md",
    "docs/how-to/import.md",
    "docs/how-to/latency.md",
    "docs/how-to/load.md",
    "docs/how-to/own-queries.md",
    "docs/how-to/plan.md",
    "docs/how-to/take-zones.md",
]
MEASURING = [
    "docs/tutorial.md",
    "docs/how-to/browse.md",
    "docs/how-to/export.md",
    "docs/how-to/machines.md",
    "docs/how-to/what-did-it.md",
]
"""Pages with several trials: only `make test-full` executes them."""
LONG = [
    "docs/how-to/bench.md",
    "docs/how-to/compare.md",
    "docs/how-to/databases.md",
    "docs/how-to/experiment.md",
    "docs/how-to/far-secondary.md",
    "docs/how-to/fair-table.md",
    "docs/how-to/frontend.md",
    "docs/how-to/long-distance.md",
    "docs/how-to/own-configuration.md",
    "docs/how-to/own-zones.md",
    "docs/how-to/primary-load.md",
    "docs/how-to/running-server.md",
    "docs/how-to/transfer-methods.md",
    "docs/reference/described-servers.md",
]
"""Pages whose runs take minutes: only `make test-full` executes them. `make test` plans them, each on its day."""
CASES = [
    ("README.md", "plan"),
    # `make test-full` runs all pages, so it plans only the page of the day.
    *(
        case
        for case in in_turn([*((page, "run") for page in SHORT), *((page, "plan") for page in LONG)], 1)
        if type(case) is tuple or case.values[1] == "run"  # what pytest.param makes is a tuple as well
    ),
    *(pytest.param(page, "run", marks=pytest.mark.full) for page in ["README.md", *MEASURING, *LONG]),
]
LIMIT_S = 1_500
"""For a page: 15 trials of some 30 s and more."""
BACKGROUND = " &"
END_LIMIT_S = 60
"""Dask gives its worker eight seconds before it kills it."""
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


DIES_WITH_US = ["setpriv", "--pdeathsig=KILL"]
"""Before a command (setpriv(1)): it ends with the process that started it, however that ends."""


@contextmanager
def namespace() -> Iterator[list[str]]:
    """What enters a network namespace with ports of its own. It has no name, so that nothing is left of it when the
    process ends that holds it, which ends with this one."""
    script = "ip link set lo up && echo && exec sleep infinity"
    command = [*DIES_WITH_US, "unshare", "--net", "sh", "-c", script]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline(), "it is there"
        yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
    finally:
        holder.kill()
        holder.wait()


@pytest.fixture
def own_loopback() -> Iterator[list[str]]:
    """A network namespace for pages that listen: others run at the same time."""
    with namespace() as enter:
        yield enter


def test_each_line_of_a_console_block_is_a_command() -> None:
    """What a reader cannot run as it stands is in a block of `sh`."""
    wrong = [
        f"{page}: {line}"
        for page in ["README.md", *SHORT, *MEASURING, *LONG]
        for block in BLOCK.finditer((ROOT / page).read_text())
        if block["kind"] == "console"
        for line in block["text"].splitlines()
        if not line.startswith("$ ")
    ]
    assert not wrong


def test_nothing_is_left_of_the_namespace_when_pytest_is_killed() -> None:
    """Its holder and what a page started in it end with the process."""
    program = (
        "from pathlib import Path; import os, signal, test_doc_commands as tested\n"
        "with tested.namespace() as enter, tested.background(Path('/'), os.environ) as servers:\n"
        "    servers.start([*enter, 'bash', '-c', 'echo $$ $PPID; exec sleep infinity'])\n"
        "    print(enter[1].split('/')[2], flush=True)\n"
        "    signal.pause()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    ) as killed:
        assert killed.stdout is not None
        told = [int(killed.stdout.readline().split()[0]) for _ in range(2)]
        killed.kill()
    deadline_s = time.monotonic() + END_LIMIT_S
    while any(Path(f"/proc/{pid}/ns/net").exists() for pid in told):
        assert time.monotonic() < deadline_s, f"{told} are left"
        time.sleep(0.01)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(("page", "how"), CASES)
def test_commands(page: str, how: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The pages decide how long it takes: the tutorial takes half a minute, and the pages of `LONG` take minutes."""
    text = (ROOT / page).read_text()
    enter = request.getfixturevalue("own_loopback") if f"{BACKGROUND}\n" in text else []
    follow(text, tmp_path, enter, how)


def follow(text: str, folder: Path, enter: Sequence[str] = (), how: str = "run") -> None:
    """Writes the files of a page to ``folder`` and runs its commands there; each must succeed, or have no valid trial
    on a machine that others use."""
    binaries = Path(sys.executable).parent
    (folder / ".venv").symlink_to(binaries.parent)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    ran = 0
    with background(folder, environment) as servers:
        for block in BLOCK.finditer(text):
            if block["file"]:
                (folder / block["file"]).write_text(block["text"])
            if block["kind"] != "console":
                continue
            for line in block["text"].splitlines():
                assert line.startswith("$ "), line
                command = line.removeprefix("$ ").removeprefix("sudo ")
                if how == "plan":
                    command = re.sub(r"dnsrig (run|bench) (?!.*--print)", r"dnsrig \1 --dry-run ", command)
                if command.endswith(BACKGROUND):
                    servers.start([*enter, "bash", "-c", f"exec {command.removesuffix(BACKGROUND)}"])
                else:
                    before = others.Moment.now()
                    result = subprocess.run(
                        [*enter, "bash", "-c", command],
                        cwd=folder,
                        env=environment,
                        capture_output=True,
                        text=True,
                        check=False,
                    )
                    if result.returncode == EXIT_NO_VALID_TRIAL:
                        share = others.share_of_others(before, others.Moment.now())
                        others.skip_if_excused((), share, f"{line}\n{result.stderr}")
                    assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
                ran += 1
    assert ran


class Servers:
    """Commands that go on while others run."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, command: list[str]) -> None:
        """With exec in it, so the process that is ended later is the command itself and not its shell."""
        self.running[command[-1]] = subprocess.Popen([*DIES_WITH_US, *command], cwd=self.folder, env=self.environment)


@contextmanager
def background(folder: Path, environment: Mapping[str, str]) -> Iterator[Servers]:
    """Ends what was started, and sees to it that it ran until then."""
    servers = Servers(folder, environment)
    try:
        yield servers
        for command, process in servers.running.items():
            assert process.poll() is None, f"{command} ended by itself: {process.returncode}"
    finally:
        for process in servers.running.values():
            process.terminate()
        for process in servers.running.values():
            process.wait(END_LIMIT_S)
