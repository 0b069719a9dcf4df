"""What the user's own data costs before anything is started: a million zone files, a zone of 20 million records, and
ten million lines of queries. Elapsed time, and the most memory that the rig and the engine had at a time.

Each part makes its data below `--out` (about 9 GB in all, removed afterwards) and then does what `dnsrig run` does once
for new files: read, check and copy them into a cache, which is below the same folder. `again` is the time of the next
run, when the cache has the data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from smoke import add_parts, parser, sized

ZONES = sized(1_000_000, smoke=1_000)
RECORDS = sized(20_000_000, smoke=20_000)
QUERIES = sized(10_000_000, smoke=10_000)
A_FOLDER = 1_000
"""Zone files in a folder."""
APEX = "$TTL 300\n@ IN SOA ns.example.net. root.example.net. 7 3600 900 1209600 300\n@ IN NS ns.example.net.\n"

PROVIDE = """
import json, os, resource, sys, threading, time
from pathlib import Path
from dnsrig import datasets, query_files

def most_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0

def watch():
    while True:
        for task in Path("/proc/self/task").glob("*/children"):
            for pid in task.read_text().split():
                try:
                    if b"dnsrig-engine" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        mib["engine"] = max(mib["engine"], most_mib(pid))
                except (FileNotFoundError, ProcessLookupError):
                    pass
        time.sleep(0.01)

kind, values, mib = sys.argv[1], json.loads(sys.argv[2]), {"engine": 0.0}
threading.Thread(target=watch, daemon=True).start()
started = time.monotonic()
if kind == "queries":
    found = query_files.provide(query_files.QueriesDocument(**values), lambda text: None).queries
else:
    made = datasets.provide(kind, {"files": values["files"]})
    found = [made.zones, made.records]
of = {"rig": resource.RUSAGE_SELF, "engine": resource.RUSAGE_CHILDREN}
used = {name: resource.getrusage(who) for name, who in of.items()}
print(json.dumps({
    "found": found, "seconds": time.monotonic() - started,
    "cpu_s": {name: each.ru_utime + each.ru_stime for name, each in used.items()},
    "mib": mib | {"rig": most_mib(os.getpid())},
}))
"""
"""What a run does with new files. Prints what it found, the time, and the most memory of both programs. The engine's is
read every 10 ms: ru_maxrss would have the memory of the program that started it, too (getrusage(2))."""


def zones(folder: Path) -> tuple[str, dict[str, str]]:
    for number in range(ZONES):
        place = folder / f"{number // A_FOLDER:04}"
        if number % A_FOLDER == 0:
            place.mkdir()
        (place / f"z{number:07}.example.zone").write_text(APEX + f"www IN A 192.0.2.{number % 256}\n")
    return "files", {"files": str(folder / "*/*.zone")}


def records(folder: Path) -> tuple[str, dict[str, str]]:
    """One zone: each name has two name servers, as delegations in the zone of a registry have."""
    file = folder / "large.zone"
    with file.open("w") as output:
        output.write(APEX.replace("@ IN SOA", "large. IN SOA").replace("@ IN NS", "large. IN NS"))
        for number in range((RECORDS - 2) // 2):
            output.write(f"d{number:08}.large. IN NS ns1.example.net.\nd{number:08}.large. IN NS ns2.example.net.\n")
    return "files", {"files": str(file)}


def queries(folder: Path) -> tuple[str, dict[str, str]]:
    file = folder / "queries.txt"
    types = ("A", "AAAA", "HTTPS", "TXT", "MX")
    with file.open("w") as output:
        for number in range(QUERIES):
            output.write(f"h{number % 3_000_017:07}.d{number % 65_521}.example {types[number % len(types)]}\n")
    return "queries", {"file": str(file)}


PARTS: dict[str, Callable[[Path], tuple[str, dict[str, str]]]] = {
    "zones": zones, "records": records, "queries": queries,
}  # fmt: skip


def measure(kind: str, values: dict[str, str], cache: Path) -> dict[str, object]:
    words = [sys.executable, "-c", PROVIDE, kind, json.dumps(values)]
    done = subprocess.run(
        words, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"DNSRIG_CACHE": str(cache)}
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    asking = parser(__doc__)
    add_parts(asking, PARTS)
    asking.add_argument("--out", type=Path, help="folder with room for the data; default: a temporary one")
    given = asking.parse_args()
    for name in given.parts:
        with tempfile.TemporaryDirectory(dir=given.out, prefix="dnsrig-own-data-") as scratch:
            data = Path(scratch) / "data"
            data.mkdir()
            kind, values = PARTS[name](data)
            first, again = (measure(kind, values, Path(scratch) / "cache") for _ in range(2))
            size = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
            print(json.dumps({"part": name, "mb": size / 1e6, "first": first, "again": again}), flush=True)
            shutil.rmtree(data)


if __name__ == "__main__":
    main()
