"""Do readers of foreign files refuse whatever is damaged? Results of other tools, experiments, files of machines

    .venv/bin/python benches/foreign_files.py [PART ...] [--inputs 200000] [--seed 1]

Each input is a whole file that was harmed in up to four places, or random bytes. A reader may read it or refuse it with
a sentence. Any other exception is a fault: the input is written to a file, whose name is printed. One file of 200 that
can be imported becomes a run, and one experiment of 50 that can be read becomes a plan. The bench needs no root.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from smoke import add_parts, parser, sized

from dnsrig.errors import UsageError
from dnsrig.experiment import model, preparation
from dnsrig.importers import _run, importers
from dnsrig.machines import document

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "unit")]
import load_data  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
import test_importers as samples  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

INPUTS = sized(200_000, smoke=300)
RUN_EVERY, PLAN_EVERY = 200, 50
SLOWEST_S = 10.0
"""Limit of one input."""
MOST_HARMS = 4
TOKENS = (
    *(b"-1", b"0", b"1e999", b"1e300", b"NaN", b"nan", b"null", b"true", b"[]", b"{}", b"[" * 200, b'{"a":' * 200),
    *(
        b"99999999999999999999",
        b"4611686018427387903",
        b'"\\ud800"',
        b"\xff\xfe",
        b'"',
        b"\n",
        b",",
        b"=",
        b"a.b.c = 1\n",
    ),
    *(b"#histogram 4999 1\n", b"Tag=x,", b"inf", b"9" * 5_000, b"\n[a]\n"),
)
MACHINES = (
    b'config = "ssh.conf"\n[machines.one]\nssh = "root@192.0.2.1"\n[machines.two]\nssh = "x"\npython = "python3"\n'
)


@dataclass(frozen=True)
class Part:
    """A kind of file: whole files by name, and what reads one. It returns whether the file was read."""

    files: Mapping[str, bytes]
    read: Callable[[str, bytes, int], bool]


def importing(folder: Path) -> Part:
    """Results of other tools."""
    load_data.write_hlog(folder / "x.hlog", [{"due": {1000: 3}, "sent": {900: 3}}])
    files = {**samples.FILES, "hlog": (folder / "x.hlog").read_bytes()}

    def read(name: str, data: bytes, number: int) -> bool:
        tool = samples.tool_of(name)
        try:
            result = importers()[tool].read(data, samples.ASKED)
            _run.check(result)
        except _run.UNREADABLE:
            return False
        counts = [count for part in result.stretches for tag in part.tags.values() for count in tag.items()]
        assert all(value >= 0 and queries > 0 for value, queries in counts)
        if number % RUN_EVERY == 0:
            with tempfile.TemporaryDirectory(dir=folder) as made:
                (Path(made) / "x").write_bytes(data)
                _run.write(tool, "x", _run.read(tool, [Path(made) / "x"], samples.ASKED), Path(made) / "run")
        return True

    return Part(files, read)


def experiments(folder: Path) -> Part:
    """Experiments, as `--dry-run` reads them."""
    path = folder / "experiment.toml"

    def read(name: str, data: bytes, number: int) -> bool:
        path.write_bytes(data)
        try:
            model.load(path, "quick", [])
            if number % PLAN_EVERY == 0:
                preparation.draft(preparation.Request(str(path)))
        except UsageError:
            return False
        return True

    return Part({name: path.read_bytes() for name, path in model.builtin().items()}, read)


def machines(folder: Path) -> Part:
    """Files of machines."""
    path = folder / "machines.toml"

    def read(name: str, data: bytes, number: int) -> bool:
        path.write_bytes(data)
        try:
            document.read(path)
        except UsageError:
            return False
        return True

    return Part({"machines": MACHINES}, read)


PARTS = {"results": importing, "experiments": experiments, "machines": machines}


def harmed(whole: bytes, draw: random.Random) -> bytes:
    """``whole`` with bytes changed, taken out, put in, or repeated; or random bytes."""
    if draw.random() < 0.05:
        return draw.randbytes(draw.randrange(300))
    data = bytearray(whole)
    for _ in range(draw.randrange(1, MOST_HARMS + 1)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0:
                data[at : at + draw.randrange(6)] = draw.choice(TOKENS)
            case 1:
                data[at : at + 1] = draw.randbytes(1)
            case 2:
                del data[at : at + draw.randrange(40)]
            case _:
                data[at:at] = data[draw.randrange(len(data) + 1) :][: draw.randrange(60)]
    return bytes(data)


def run(name: str, inputs: int, seed: int) -> bool:
    """Whether a reader had no fault."""
    draw, began_s, read, faults, slowest_s = random.Random(seed), time.monotonic(), 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        part = PARTS[name](Path(folder))
        names = sorted(part.files)
        for number in range(inputs):
            chosen = draw.choice(names)
            data = harmed(part.files[chosen], draw)
            since_s = time.monotonic()
            try:
                read += part.read(chosen, data, number)
            except Exception as error:
                faults += 1
                kept = Path(tempfile.gettempdir()) / f"foreign-file-{name}-{seed}-{number}"
                kept.write_bytes(data)
                print(f"{chosen}: {type(error).__name__}: {str(error)[:200]}: {kept}", flush=True)
            slowest_s = max(slowest_s, time.monotonic() - since_s)
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name}: seed {seed}, {inputs:,} inputs, {read:,} read, {faults:,} faults, {time.monotonic() - began_s:.0f} s, "
        f"slowest {slowest_s:.2f} s, at most {most_mb:.0f} MB",
        flush=True,
    )
    return not faults and slowest_s < SLOWEST_S


def main() -> int:
    asking = parser(__doc__)
    add_parts(asking, PARTS)
    asking.add_argument("--inputs", type=int, default=INPUTS, help="of each part; default: %(default)s")
    asking.add_argument("--seed", type=int, default=1)
    chosen = asking.parse_args()
    good = [run(name, chosen.inputs, chosen.seed) for name in chosen.parts]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
