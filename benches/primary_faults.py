"""What secondaries do when a primary is faulty: each fault of `serve zones`, against `transfer` and four servers.

    .venv/bin/python benches/primary_faults.py [SECONDARY...] [--results DIR] [--write]

Needs root. A trial a fault and secondary: the primary `zones@engine` has nine zones, every third of them faulty, and
the secondary starts with nothing. For 8 s its answers for the SOA of each zone are looked at. DIR keeps a file a
secondary, so that several can be asked beside each other; `--write` makes docs/reference/primary-faults.md of the
files.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
from smoke import parser, sized

from dnsrig.errors import DnsrigError
from dnsrig.experiment import preparation
from dnsrig.lab.host import inside
from dnsrig.lab.network import Network
from dnsrig.procedures.context import TrialContext
from dnsrig.rundir import TrialSpec

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/primary-faults.md"
SUITE = "forky"
SECONDARIES = {"transfer": "`transfer`", "bind": "BIND", "knot": "Knot DNS", "nsd": "NSD", "powerdns": "PowerDNS"}
ZONES = 9
EVERY = 3
WATCHED_S = sized(8.0, smoke=2.0)
LOOK_EVERY_S = 0.25
QUERY_LIMIT_S = 1.0


@dataclass(frozen=True)
class Fault:
    """``settings`` are added to the settings of every trial; ``ixfr``: zones change each second and are asked for by
    IXFR."""

    words: str
    settings: tuple[str, ...] = ()
    ixfr: bool = False


TSIG = ("transfer.transport=tcp+tsig",)
XOT = ("transfer.transport=xot",)
SMALL_MESSAGES = ('hosts.primary.settings."records-per-message"=2',)
FAULTS = (
    Fault("servfail-after=0"),
    Fault("refused-after=0"),
    Fault("close-after=1"),
    Fault("cut-after=1", SMALL_MESSAGES),
    Fault("slow=100ms", SMALL_MESSAGES),
    Fault("wrong-serial"),
    Fault("soa-different"),
    Fault("soa-missing"),
    Fault("out-of-zone"),
    Fault("tsig-missing", TSIG),
    Fault("tsig-wrong", TSIG),
    Fault("wrong-id"),
    Fault("endless"),
    Fault("truncated"),
    Fault("serial-backwards", ixfr=True),
    Fault("length-zero"),
    Fault("compression-loop"),
    Fault("no-tickets", XOT),
)
ASKED = sized(FAULTS, smoke=FAULTS[:1])
NO_XOT = ("powerdns",)


def main() -> int:
    if found := results(__doc__, PAGE, lambda secondary: {fault.words: of(secondary, fault) for fault in ASKED}):
        PAGE.write_text(page(found))
    return 0


def results(
    description: str | None, to: Path, ask: Callable[[str], dict[str, dict[str, Any]]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Ask the secondaries that the command line names, and keep the answers of each in a file. With `--write`: the
    answers in all files, by secondary; else nothing."""
    asking = parser(description)
    asking.add_argument("secondaries", nargs="*", choices=[*SECONDARIES, []], default=[], metavar="SECONDARY")
    asking.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / f"dnsrig-{to.stem}")
    asking.add_argument("--write", action="store_true", help=f"write the table in {to.relative_to(ROOT)}")
    options = asking.parse_args()
    options.results.mkdir(exist_ok=True)
    files = {secondary: options.results / f"{secondary}.json" for secondary in SECONDARIES}
    for secondary in options.secondaries or ([] if options.write else SECONDARIES):
        files[secondary].write_text(json.dumps(ask(secondary), indent=1) + "\n")
    return {secondary: json.loads(file.read_text()) for secondary, file in files.items()} if options.write else {}


def of(secondary: str, fault: Fault) -> dict[str, Any]:
    """What ``secondary`` made of it."""
    if "xot" in " ".join(fault.settings) and secondary in NO_XOT:
        return {"none": "no XoT"}
    folder = Path(tempfile.mkdtemp(prefix="dnsrig-primary-faults-"))
    try:
        with started(specified(secondary, fault), folder) as context:
            found = transferred(context) if secondary == "transfer" else watched(context, fault)
    except DnsrigError as error:
        found = {"error": error.message}
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{secondary:10} {fault.words:18} {found}", flush=True)
    return found


@contextlib.contextmanager
def started(spec: TrialSpec, folder: Path) -> Iterator[TrialContext]:
    """A trial in which the primary answers and the secondary has just been started."""
    with Network(spec.hosts, spec.links) as lab:
        context = TrialContext(spec, folder, lab, lambda event: None)
        try:
            context.start_watch()
            context.start_ready("primary", limit_s=60)
            context.servers.prepare("secondary")
            context.servers.start("secondary")
            yield context
        finally:
            context.close()


def specified(secondary: str, fault: Fault) -> TrialSpec:
    source = "transfer@engine" if secondary == "transfer" else f"{secondary}@{SUITE}"
    changes = ("transfer.ixfr=true", "transfer.notify=true", f'hosts.primary.settings."changes-per-s"={ZONES}')
    settings = [
        f"server={source}",
        f"zones={ZONES}",
        "hosts.primary.server=zones@engine",
        f"hosts.primary.settings.fault={fault.words}",
        f'hosts.primary.settings."fault-every"={EVERY}',
        *fault.settings,
        *(changes if fault.ixfr and secondary != "transfer" else ()),
    ]
    if secondary == "transfer":
        settings += ["hosts.secondary.settings.timeout=1s", 'hosts.secondary.settings."time-max-s"=5']
    manifest = preparation.prepare(preparation.Request("tour", settings=settings), lambda text: None)
    (spec,) = manifest.specs.values()
    return spec.model_copy(update={"repeat": 1})


def transferred(context: TrialContext) -> dict[str, Any]:
    """How the zones ended for the instrument."""
    summary = context.finish_server("secondary", limit_s=60)
    return {"outcomes": summary["outcomes"]}


def watched(context: TrialContext, fault: Fault) -> dict[str, Any]:
    """The serial that each zone was served with first and last; none: it was not served."""
    names = [zone.name for zone in context.servers.placements["secondary"].zones]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    until = time.monotonic() + WATCHED_S
    address = str(context.spec.hosts["secondary"].address)
    with inside(context.host("observer").namespace):
        while time.monotonic() < until and (fault.ixfr or len(last) < ZONES):
            for name in names:
                if (serial := served(name, address)) is not None:
                    first.setdefault(name, serial)
                    last[name] = serial
            time.sleep(LOOK_EVERY_S)
    context.servers.check()
    return {"zones": [[first.get(name), last.get(name)] for name in names], "serial": context.spec.dataset.serial}


def served(name: str, address: str) -> int | None:
    """The serial in an authoritative answer."""
    query = dns.message.make_query(name, "SOA", flags=0)
    try:
        answer = dns.query.udp(query, address, timeout=QUERY_LIMIT_S)
    except (dns.exception.DNSException, OSError):
        return None
    if answer.rcode() != dns.rcode.NOERROR or not answer.flags & dns.flags.AA or not answer.answer:
        return None
    return int(answer.answer[0][0].serial)


def page(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The page of the reference: a row a fault, a column a secondary."""
    rows: list[list[object]] = []
    for fault in FAULTS:
        cells = [cell(found[secondary].get(fault.words, {"none": "not asked"}), fault) for secondary in SECONDARIES]
        rows.append([f"`{fault.words}`", *cells])
    return f"{HEAD}{table(['fault', *SECONDARIES.values()], rows)}{TAIL}"


def cell(result: dict[str, Any], fault: Fault) -> str:
    """The words of the table for one trial."""
    if "outcomes" in result:
        return ", ".join(f"`{outcome}` {count}" for outcome, count in sorted(result["outcomes"].items()))
    if "zones" not in result:
        return str(result.get("none") or result["error"])
    zones = result["zones"]
    faulty, others = zones[::EVERY], [zone for number, zone in enumerate(zones) if number % EVERY]
    words = follows(faulty) if fault.ixfr else takes(faulty, result["serial"])
    served_others = sum(last is not None for _, last in others)
    return words if served_others == len(others) else f"{words}; of the other zones it has {served_others}"


def takes(zones: list[list[int | None]], serial: int) -> str:
    came = [last for _, last in zones if last is not None]
    if not came:
        return "no"
    older = ", with the serial of the AXFR" if any(last < serial for last in came) else ""
    return ("yes" if len(came) == len(zones) else f"{len(came)} of {len(zones)}") + older


def follows(zones: list[list[int | None]]) -> str:
    """Whether zones that change each second came with later serials."""
    risen = [last - first for first, last in zones if first is not None and last is not None]
    if not risen:
        return "no"
    return "yes, and follows the changes" if min(risen) >= LEAST_RISE else f"yes, and stays {max(risen)} changes on"


LEAST_RISE = 3
"""A zone changes some eight times while it is watched."""

HEAD = f"""<!-- Written by benches/primary_faults.py, {time.strftime("%Y-%m-%d")}. -->

# A faulty primary, and what secondaries do

Each fault of `dnsrig serve zones`, as `dnsrig transfer` reports it, and whether a secondary takes the zones that have
it. There are nine zones, every third of them faulty. The secondaries are packages of Debian {SUITE} at their defaults.
They start with nothing, and their answers are looked at for {WATCHED_S:g} s: `no` means that no faulty zone was served
until then. Where the other six zones suffer as well, the cell has their number. `transfer` has a timeout of 1 s and
ends each zone after 5 s.

    sudo .venv/bin/python benches/primary_faults.py && .venv/bin/python benches/primary_faults.py --write

"""

TAIL = """
- `servfail-after`, `refused-after` and `close-after` count the transfers of a connection, of whatever zone.
- `transfer` asks for whole zones here, in which `serial-backwards` does not show. With `--ixfr` it reports
  `serial-backwards`. The servers ask for changes as often as they are configured to; zones change each second.
- `wrong-serial`: an AXFR cannot show that SOA queries have another serial.
- `out-of-zone`: all servers serve the zone. `transfer` counts it as wrong; `interrogate` skips the record as they do,
  and mentions it.
- `wrong-id`: the answer belongs to no query, so `transfer` waits for one that does.
"""

if __name__ == "__main__":
    raise SystemExit(main())
