"""Makes the pictures of the docs again: `make pictures`, or `python docs/pictures.py [PICTURE [RUN]]`.

`PICTURES` has every picture. Views of the report and of `dnsrig browse` are taken from a run that is stored in
docs/runs/, or from RUN. Results of long runs are made by the command in the table, which is only printed.

`python docs/pictures.py --store RUN NAME` stores a run as docs/runs/NAME.tar.xz.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
FOLDER, RUNS = DOCS / "pictures", DOCS / "runs"
WIDE, PHONE = (1280, 800), (390, 844)
PATIENCE_MS = 120_000
DERIVED = ("report.html", "summary.parquet", ".lock")
"""Files of a run that are made again, and so not stored."""


@dataclass(frozen=True)
class View:
    """What a browser shows of a stored run."""

    run: str
    """Of docs/runs/."""
    page: str = "report"
    """`report`; or `browse`, the page of the run there."""
    size: tuple[int, int] = WIDE

    def draw(self, picture: Path, run: Path | None) -> None:
        with unpacked(self.run) if run is None else copied(run) as folder:
            if self.page == "report":
                from dnsrig.report import write_report

                take(write_report(folder).path.as_uri(), picture, self.size)
            else:
                from dnsrig.browse.scan import run_id

                with browsing(folder.parent) as address:
                    take(address, picture, self.size, f"/run/{run_id(folder.name)}")


@dataclass(frozen=True)
class Rebuilt:
    """The result of a long run, made again by a command."""

    command: str

    def draw(self, picture: Path, run: Path | None) -> None:
        print(f"{picture.name}: not made here. {self.command}")


PICTURES: dict[str, View | Rebuilt] = {
    "architecture.svg": Rebuilt("`make docs` draws it from the imports."),
    "report.png": View("tour"),
    "report-phone.png": View("tour", size=PHONE),
    "browse-run.png": View("tour", "browse"),
    **{
        f"report-{run}{ending}.png": View(run, size=size)
        for run in ("latency", "capacity", "resolver", "long-distance")
        for ending, size in (("", WIDE), ("-phone", PHONE))
    },
    "s2-story.png": Rebuilt(
        "Its command is in docs/results/latency.md, S2's story as one run; then `dnsrig export RUN png`."
    ),
    "stalling-server.png": Rebuilt("`benches/stalling_server.py` makes the run and its chart."),
    "replay-timing.png": Rebuilt("`benches/replay_peers.py` makes the captures and their chart."),
    "bisect-flame.png": Rebuilt(
        "Its command is in docs/explanation/bisect.md, Real searches; then `dnsrig export RUN png`."
    ),
    "history-knot.png": Rebuilt("Its command is in docs/explanation/history.md, Histories measured."),
    "congestion-control.png": Rebuilt(
        "`dnsrig run congestion-control --scale standard --at-once 2`; then `dnsrig export RUN png`."
    ),
    **{
        f"{experiment}.png": Rebuilt(
            "Its command is in docs/results/transports.md; then `benches/transports.py RUN --pictures docs/pictures`."
        )
        for experiment in ("transports", "lossy-transports", "connections-held", "xoq")
    },
    **{
        f"bench{question}{ending}": Rebuilt("`docs/casts.py` runs the command and records it.")
        for question in ("", "-running", "-max", "-transfer", "-capture")
        for ending in (".svg", "-wide.svg", "-report.png")
    },
}
"""File in docs/pictures/ -> how it is made."""


@contextmanager
def unpacked(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(RUNS / f"{name}.tar.xz") as stored:
            stored.extractall(temporary, filter="data")
        (folder,) = Path(temporary).iterdir()
        yield folder


@contextmanager
def copied(run: Path) -> Iterator[Path]:
    """A copy, so that nothing is written into ``run``."""
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(shutil.copytree(run, Path(temporary) / run.name))


def store(run: Path, name: str) -> None:
    RUNS.mkdir(exist_ok=True)
    with tarfile.open(RUNS / f"{name}.tar.xz", "w:xz", preset=9) as stored:
        stored.add(run, run.name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if Path(member.name).name in DERIVED else member


@contextmanager
def browsing(folder: Path) -> Iterator[str]:
    """The address of `dnsrig browse` on a folder of runs, with its token."""
    command = [sys.executable, "-m", "dnsrig", "browse", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as browse:
        assert browse.stdout is not None
        try:
            found = (re.search(r"http://\S+", line) for line in browse.stdout)
            yield next(match.group() for match in found if match)
        finally:
            browse.terminate()


def take(address: str, picture: Path, size: tuple[int, int], then: str = "") -> None:
    """The first screen of ``address``, or of the page ``then`` of the same site."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    width, height = size
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto(address)
        if then:
            page.goto(address.partition("/?")[0] + then)
            page.wait_for_load_state("networkidle", timeout=PATIENCE_MS)
        page.screenshot(path=picture)
        browser.close()


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--store"]:
        return store(Path(arguments[1]), arguments[2])
    names = arguments[:1] or list(PICTURES)
    for name in names:
        PICTURES[name].draw(FOLDER / name, Path(arguments[1]) if arguments[1:] else None)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
