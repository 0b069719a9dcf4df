"""Programs of one engine in one network namespace, and what is kept of them for the comparison."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from behaviour.capture import Capture
from behaviour.records import events, histograms, rows
from behaviour.wire import View, lines

LIMIT_S = 60.0
BAD_INPUT = 2
"""The exit code of a command that the engine does not understand."""
WERE = {"propagation": "probe propagation", "interrogate": "transfer --interrogate"}
"""Subcommand → what it was: for engines whose help does not name it."""
OPTIONS_WERE = {
    "--bytes-max": "--octets-max",
    "--message-bytes": "--message-octets",
    "--forward": "--there",
    "--reverse": "--back",
}
"""Option → what it was: for engines whose `link` does not know `--forward`."""
EXACT = View()


class Bench:
    """What a run works with. Everything that it keeps goes into `kept`: lines under a title."""

    def __init__(self, engine: Path, seed: int, folder: Path) -> None:
        self.engine, self.seed, self.folder = engine, seed, folder
        self.kept: dict[str, list[str]] = {}
        self._help = subprocess.run([engine, "--help"], check=True, capture_output=True, text=True).stdout
        of_link = subprocess.run([engine, "link", "--help"], check=True, capture_output=True, text=True).stdout
        self._options = {} if "--forward" in of_link else OPTIONS_WERE

    def keep(self, title: str, content: Iterable[str]) -> None:
        assert title not in self.kept, title
        self.kept[title] = list(content)

    def keep_rows(self, title: str, folder: str = ".", **how: Mapping[str, object]) -> None:
        """Of all row files and histograms in a folder; how each is compared, by its name."""
        for file in sorted((self.folder / folder).iterdir()):
            name = f"{title}: {file.name}"
            if file.suffix == ".arrow":
                self.keep(name, rows(file, **how.get(file.stem.replace("-", "_"), {})))  # type: ignore[arg-type]
            elif file.suffix == ".hlog":
                self.keep(name, histograms(file))

    @contextmanager
    def wire(self, title: str, view: View = EXACT) -> Iterator[None]:
        """Keep what is on the wire meanwhile."""
        capture = Capture()
        try:
            yield
        finally:
            conversations = capture.conversations()
        self.keep(f"{title}: wire", lines(conversations, view))

    def run(
        self,
        title: str,
        command: str,
        values: bool = True,
        interrupt_after_s: float | None = None,
        may_be_refused: bool = False,
    ) -> None:
        """A subcommand until it ends; its events and its exit code. `values`: else only what keys the events have."""
        with self._process(command) as process:
            if interrupt_after_s is not None:
                time.sleep(interrupt_after_s)
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=LIMIT_S)
        if process.returncode == BAD_INPUT and not may_be_refused:
            raise RuntimeError(f"{command} is refused: {self._errors()}")
        self._ended(title, output, process.returncode, values)

    @contextmanager
    def serving(self, title: str, command: str, values: bool = True) -> Iterator[subprocess.Popen[str]]:
        """A subcommand that says when it is ready, and ends with its standard input."""
        with self._process(f"{command} --until-eof") as process:
            assert process.stdout is not None and process.stdin is not None
            output = ""
            for line in process.stdout:
                output += line
                if json.loads(line)["event"] == "ready":
                    break
            else:
                raise RuntimeError(f"{command} is not ready: {self._errors()}")
            yield process
            rest, _ = process.communicate(timeout=LIMIT_S)
            self._ended(title, output + rest, process.returncode, values)

    def _ended(self, title: str, output: str, code: int | None, values: bool = True) -> None:
        for name, content in events(output, values).items():
            self.keep(f"{title}: {name}", content)
        self.keep(f"{title}: exit code", [str(code)])

    def _errors(self) -> str:
        return (self.folder / "errors.txt").read_text()[-300:]

    @contextmanager
    def _process(self, command: str) -> Iterator[subprocess.Popen[str]]:
        name, _, options = command.partition(" ")
        if name in WERE and f"\n  {name} " not in self._help:
            command = f"{WERE[name]} {options}"
        words = [str(self.engine), *(self._options.get(word, word) for word in shlex.split(command))]
        with (self.folder / "errors.txt").open("a") as errors:
            process = subprocess.Popen(
                words, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()
