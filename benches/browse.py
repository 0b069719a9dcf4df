"""How soon `dnsrig browse` shows something: the list of 2,000 runs, the first chart of a run, a trial of 10 M samples.

In a real browser, from the request to the drawn chart. The runs are made up. It needs Chromium, which `make browser`
installs.

    python benches/browse.py [RUNS] [SAMPLES]
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import polars as pl
import uvicorn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsing import address  # type: ignore[import-not-found, unused-ignore]
from playwright.sync_api import Page, sync_playwright
from smoke import parser, sized
from synthetic import Plan, build  # type: ignore[import-not-found, unused-ignore]

from dnsrig.browse import serve, vega
from dnsrig.browse.app import application
from dnsrig.browse.index import Index
from dnsrig.browse.security import Access

LONG = "synthetic/20250101T000000Z-long"
SERIES = [("cgroup", "cpu_usage_us"), ("cgroup", "memory_anonymous_bytes"), ("sockets", "tcp_time_wait")]


def make(root: Path, runs: int, samples: int) -> None:
    """``runs`` small runs, and one whose first trial has ``samples`` rows."""
    first = build(root / "synthetic/run-00000", Plan(zones=[50], repeats=2, samples=False))
    for number in range(1, runs - 1):
        shutil.copytree(first, root / f"synthetic/run-{number:05}", copy_function=shutil.copyfile)
    directory = build(root / LONG, Plan(zones=[50], repeats=1))
    step_ns = max(1, 600_000_000 * len(SERIES) // samples)
    names = pl.DataFrame(SERIES, schema=["source", "metric"], orient="row").with_columns(host=pl.lit("secondary"))
    rows = names.with_columns(pl.all().cast(pl.Categorical)).join(
        pl.select(tick=pl.int_range(samples // len(SERIES))), how="cross"
    )
    rows.sort("tick").select(
        "host", "source", "metric", time_ns=5_000_000_000_000 + pl.col("tick") * step_ns, value=pl.col("tick")
    ).write_ipc_stream(directory / "trials/v00/01/samples.arrow")


def until_drawn(page: Page, address: str, wanted: str) -> float:
    """Seconds from the request to when ``wanted`` is there."""
    began = time.perf_counter()
    page.goto(address)
    if (places := page.locator("[data-chart]").filter(visible=True)).count():
        places.first.scroll_into_view_if_needed()
    page.locator(wanted).first.wait_for(state="attached", timeout=120_000)
    return time.perf_counter() - began


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("runs", nargs="?", type=int, default=sized(2_000, smoke=4))
    asking.add_argument("samples", nargs="?", type=int, default=sized(10_000_000, smoke=3_000))
    asked = asking.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = Path(folder, "runs")
        make(root, asked.runs, asked.samples)
        vega.bundle()
        measure(
            root,
            Path(folder, "index.sqlite"),
            playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"]).new_page(),
        )


def measure(root: Path, file: Path, page: Page) -> None:
    began = time.perf_counter()
    count = len(Index(root, file).entries())
    print(f"index of {count:,} runs made    {time.perf_counter() - began:6.2f} s")
    listening = serve.listen("127.0.0.1", 0)
    access = Access("token", "127.0.0.1", listening.getsockname()[1])
    app = application(root, access, Index(root, file))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    base = access.url.partition("/?")[0]
    print(f"list of runs, first time     {until_drawn(page, access.url, 'table.runs'):6.2f} s")
    print(f"list of runs, again          {until_drawn(page, base, 'table.runs'):6.2f} s")
    first = until_drawn(page, base + address("synthetic/run-00001"), "#answer-chart svg:visible")
    print(f"run to its first chart       {first:6.2f} s")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    trial = until_drawn(page, base + address(LONG, "trial/v00/1"), "[data-drawn=yes] svg")
    print(f"trial, all its samples       {trial:6.2f} s")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory                       {after:6.0f} MiB, {before:.0f} before the trial")
    server.should_exit = True
    thread.join(5)


if __name__ == "__main__":
    main()
