"""Records terminals for the docs: `python docs/casts.py [NAME...]`, as root, on a machine with nothing else to do.

`CASTS` has the commands. Each is typed into a terminal of 80 columns, in a folder with zones and queries.
What the terminal shows is kept as docs/casts/NAME.cast (asciicast v2, https://docs.asciinema.org/manual/asciicast/v2/)
and drawn as docs/pictures/NAME.svg, line by line in its time. NAME-wide.svg shows the end of it at 140 columns, and
NAME-report.png the first screen of its report.

`python docs/casts.py --draw [NAME...]` draws the pictures again, without running anything.
"""

from __future__ import annotations

import argparse
import codecs
import fcntl
import json
import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from html import escape
from pathlib import Path

import pictures
from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
FOLDER, PICTURES = DOCS / "casts", DOCS / "pictures"
CASTS = {
    "bench": "dnsrig bench bind@bookworm bind@forky --zone example.zone --queries queries.txt --rate 20000",
    "bench-running": "dnsrig bench 127.0.0.1:5300 --queries queries.txt --rate 1k,5k,20k --transport udp,tcp,dot",
    "bench-max": "dnsrig bench knot@forky nsd@forky --max",
    "bench-transfer": "dnsrig bench bind@forky knot@forky --transfer --zone big.zone --rtt 200ms --loss 0.5% "
    "--transport tcp,xot",
    "bench-capture": "dnsrig bench unbound@forky knot-resolver@forky --capture clients.pcap",
}
NARROW, WIDE = 80, 140
REPORT = (900, 720)
"""Size of the picture of a report."""
NAMES, DELEGATIONS = 1_000, 20_000
QUERIES, INTERVAL_NS = 600, 4_000_000
"""The capture clients.pcap has 250 queries a second, for 2.4 s."""
PAUSE_S = 0.5
"""Longest time between two lines of a picture: nobody wants to wait as long as the measurement took."""
SHOW = """
import sys
from pathlib import Path
from dnsrig.cli import report
report.show(report.write(Path(sys.argv[1])), bars=True)
"""
SIZE_PX, WIDTH_PX, LINE_PX, MARGIN_PX = 14, 8.4, 19, 14
BACKGROUND, FOREGROUND = "#1b1f24", "#d5dae0"
Event = tuple[float, str, str]


def main() -> None:
    asking = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asking.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(CASTS)}")
    asking.add_argument("--draw", action="store_true", help="only draw the pictures again")
    given = asking.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name in given.names or CASTS:
        if not given.draw:
            record(name)
        for which in (name, f"{name}-wide"):
            width, events = read(FOLDER / f"{which}.cast")
            (PICTURES / f"{which}.svg").write_text(picture(width, events))


def record(name: str) -> None:
    """Type the command in a new folder with its files, and keep what the terminal shows."""
    with tempfile.TemporaryDirectory(prefix="dnsrig-cast-") as temporary, ExitStack() as stack:
        folder = Path(temporary)
        write_files(folder)
        if name == "bench-capture":
            write_capture(folder / "clients.pcap")
        if name == "bench-running":
            stack.enter_context(a_running_unbound(folder))
        words = shlex.split(CASTS[name])
        command = [sys.executable, "-m", *words]
        typed = (0.0, "o", f"# {CASTS[name]}\r\n")
        write(FOLDER / f"{name}.cast", NARROW, [typed, *shown(command, folder, NARROW)])
        run = max((folder / "runs").glob("*/*/"))
        wide = [sys.executable, "-c", SHOW, str(run.relative_to(folder))]
        write(FOLDER / f"{name}-wide.cast", WIDE, [typed, *shown(wide, folder, WIDE)])
        pictures.take((run / "report.html").as_uri(), PICTURES / f"{name}-report.png", REPORT)


def write_files(folder: Path) -> None:
    """example.zone, queries.txt, big.zone."""
    apex = "$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 900 1209600 300\n@ IN NS ns1\nns1 IN A 192.0.2.1\n"
    hosts = "".join(f"host{number:04} IN A 192.0.2.{number % 250}\n" for number in range(NAMES))
    (folder / "example.zone").write_text("$ORIGIN example.\n" + apex + hosts)
    (folder / "queries.txt").write_text("".join(f"host{number:04}.example A\n" for number in range(NAMES)))
    names = "".join(f"d{number:05} IN NS ns{number % 9}.example.net.\n" for number in range(DELEGATIONS))
    (folder / "big.zone").write_text("$ORIGIN big.example.\n" + apex + names)


def write_capture(path: Path) -> None:
    sys.path.insert(0, str(DOCS.parent / "tests"))
    import captures  # type: ignore[import-not-found]

    path.write_bytes(captures.pcap(captures.of_clients_of_a_resolver(queries=QUERIES, interval_ns=INTERVAL_NS)))


def a_running_unbound(folder: Path) -> ExitStack:
    """An Unbound on loopback, which answers for the names of queries.txt, also over DoT. By default it takes 10
    connections over TCP at once (incoming-num-tcp), and `bench` has 16."""
    sys.path.insert(0, str(DOCS.parent / "benches"))
    import running_server  # type: ignore[import-not-found]

    config = running_server.UNBOUND.replace(str(running_server.PORT), "5300")
    running_server.UNBOUND = config.replace(str(running_server.DOT_PORT), "853").replace("example.com.", "example.")
    running_server.UNBOUND += "  incoming-num-tcp: 100\n"
    running_server.PORT = 5300
    own = folder / "unbound"
    own.mkdir()
    stack = ExitStack()
    stack.enter_context(running_server.unbound(own))
    return stack


def shown(command: list[str], folder: Path, width: int) -> Iterator[Event]:
    """What a terminal of this width shows of a command: (seconds since the start, "o", text). Standard error is no
    terminal, so that progress is in lines, as in a log."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = os.environ | {"COLUMNS": str(width), "TERM": "xterm-256color", "PYTHONPATH": str(DOCS.parent)}
    script = f"{shlex.join(command)} 2> >(cat)"
    started = time.monotonic()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with subprocess.Popen(
        ["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    ) as shell:
        os.close(theirs)
        try:
            while text := os.read(ours, 1 << 16):
                yield time.monotonic() - started, "o", decoder.decode(text)
        except OSError:
            pass  # the last program with the terminal has ended (EIO, tty_ioctl(4))
    os.close(ours)
    if shell.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {shell.returncode}")


def write(path: Path, width: int, events: Iterable[Event]) -> None:
    kept = list(events)
    height = sum(text.count("\n") for _, _, text in kept) + 1
    header = {"version": 2, "width": width, "height": height}
    lines = [header, *([round(seconds, 3), kind, text] for seconds, kind, text in kept)]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def read(path: Path) -> tuple[int, list[Event]]:
    header, *events = map(json.loads, path.read_text().splitlines())
    return header["width"], events


def picture(width: int, events: list[Event]) -> str:
    """An SVG in which each line appears in its time. Without animation all lines are there."""
    rows, at_s, before_s, rest = [], 0.0, 0.0, ""
    for seconds, _, text in events:
        at_s, before_s = at_s + min(seconds - before_s, PAUSE_S), seconds
        *whole, rest = (rest + text.replace("\r\n", "\n")).split("\n")
        rows += [(at_s, part) for text in whole for part in wrapped(Text.from_ansi(text), width)]
    console = Console(width=10_000, color_system="truecolor", force_terminal=True)
    drawn = [line(console, number, seconds, text) for number, (seconds, text) in enumerate(rows)]
    wide = round(2 * MARGIN_PX + width * WIDTH_PX)
    high = 2 * MARGIN_PX + len(rows) * LINE_PX
    style = (
        f"text{{font:{SIZE_PX}px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:{FOREGROUND};white-space:pre}}"
        "g{animation:appear 1ms backwards}@keyframes appear{from{opacity:0}}"
    )
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n{body}\n</svg>\n'
    )


def wrapped(text: Text, width: int) -> Iterable[Text]:
    """The lines in which a terminal of this width shows a line."""
    return text.divide(range(width, len(text), width)) if len(text) > width else [text]


def line(console: Console, number: int, seconds: float, text: Text) -> str:
    top, column, parts = MARGIN_PX + number * LINE_PX + SIZE_PX, 0, []
    for segment in text.render(console):
        if segment.text.strip():
            style = segment.style
            color = style.color.get_truecolor().hex if style and style.color else ""
            look = (f' fill="{color}"' if color else "") + (' font-weight="bold"' if style and style.bold else "")
            left, long = MARGIN_PX + column * WIDTH_PX, len(segment.text) * WIDTH_PX
            parts.append(
                f'<text x="{left:.1f}" y="{top}" textLength="{long:.1f}" xml:space="preserve"{look}>{escape(segment.text)}</text>'
            )
        column += len(segment.text)
    return f'<g style="animation-delay:{seconds:.2f}s">{"".join(parts)}</g>'


if __name__ == "__main__":
    main()
