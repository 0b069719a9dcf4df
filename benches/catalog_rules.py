"""What BIND, Knot DNS, NSD and PowerDNS do with catalog zones that break a rule of RFC 9432, and what `transfer` does.

    .venv/bin/python benches/catalog_rules.py [SECONDARY...] [--results DIR] [--write]

Needs root. The primary is NSD with six zones and a catalog. In one trial the secondary starts with the broken catalog;
in another one it has the members of a right one, which then becomes broken. `--write` puts a table of the files in DIR
into docs/reference/catalog-zones.md.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primary_faults import ROOT, SECONDARIES, SUITE, results, served, started
from smoke import sized

from dnsrig import confinement, datasets
from dnsrig.errors import DnsrigError
from dnsrig.experiment import preparation
from dnsrig.lab.host import inside
from dnsrig.procedures.context import TrialContext
from dnsrig.rundir import TrialSpec

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

PAGE = ROOT / "docs/reference/catalog-zones.md"
MARKS = ("<!-- servers: written by benches/catalog_rules.py -->\n", "<!-- end of servers -->\n")
ZONES = 6
WATCHED_S = sized(8.0, smoke=1.0)
RIGHT_LIMIT_S = 30.0
"""A secondary that takes the members of a right catalog has them long before."""
LOOK_EVERY_S = 0.25
VERSION = 'version\tIN TXT "2"\n'
NAME_SERVER = "@\tIN NS invalid.\n"
LISTED = "m000001.zones\tIN PTR z000001.example.\n"


@dataclass(frozen=True)
class Rule:
    """``broken`` has taken the place of ``right`` in the zone file."""

    section: str
    words: str
    right: str
    broken: str


RULES = (
    Rule("§4.1", "one zone under two labels", LISTED, LISTED + "other.zones\tIN PTR z000001.example.\n"),
    Rule("§4.1", "two PTR records at one label", LISTED, LISTED + "m000001.zones\tIN PTR z999999.example.\n"),
    Rule("§4.2.1", "no `version`", VERSION, ""),
    Rule("§4.2.1", '`version` is "3"', VERSION, 'version\tIN TXT "3"\n'),
    Rule("§4.2.1", "two records `version`", VERSION, VERSION + 'version\tIN TXT "1"\n'),
    Rule(
        "§4.3.1", "two PTR records `coo`", LISTED, LISTED + "".join(f"coo.m000001.zones\tIN PTR {c}.\n" for c in "ab")
    ),
    Rule("§4", "no NS record", NAME_SERVER, ""),
    Rule("§4.2", "*right:* a property that nobody knows", LISTED, LISTED + 'unknown.m000001.zones\tIN TXT "x"\n'),
    Rule("§4.4", "*right:* a property below `ext`", LISTED, LISTED + 'x.ext.m000001.zones\tIN TXT "x"\n'),
)
ASKED = sized(RULES, smoke=RULES[:1])


def main() -> int:
    if found := results(__doc__, PAGE, lambda secondary: {rule.words: of(secondary, rule) for rule in ASKED}):
        write(found)
    return 0


def of(secondary: str, rule: Rule) -> dict[str, Any]:
    """Members that ``secondary`` has: of the broken catalog, and of the right one when that has become broken."""
    if secondary == "transfer":
        found = {"at_once": attempt(secondary, rule, transferred)}
    else:
        found = {"at_once": attempt(secondary, rule, members), "afterwards": attempt(secondary, rule, stay)}
    print(f"{secondary:10} {rule.words:40} {found}", flush=True)
    return found


def attempt(secondary: str, rule: Rule, look: Any) -> Any:
    folder = Path(tempfile.mkdtemp(prefix="dnsrig-catalog-rules-"))
    try:
        spec = specified(secondary, rule, folder, is_broken=look is not stay)
        (folder / "trial").mkdir()
        with started(spec, folder / "trial") as context:
            return look(context, rule)
    except DnsrigError as error:
        return error.message
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def specified(secondary: str, rule: Rule, folder: Path, *, is_broken: bool) -> TrialSpec:
    source = "transfer@engine" if secondary == "transfer" else f"{secondary}@{SUITE}"
    settings = [f"server={source}", f"zones={ZONES}", "transfer.provisioning=catalog", "transfer.notify=true"]
    manifest = preparation.prepare(preparation.Request("tour", settings=settings), lambda text: None)
    (spec,) = manifest.specs.values()
    # A copy of its own: the catalog is changed, and others use the dataset.
    dataset = shutil.copytree(datasets.folder(spec.dataset.key), folder / "dataset")
    catalog = dataset / datasets.CATALOG_FILE
    if is_broken:
        catalog.write_text(broken(catalog.read_text(), rule))
    confinement.own(dataset, confinement.USER)
    return spec.model_copy(update={"repeat": 1, "dataset": spec.dataset.model_copy(update={"key": str(dataset)})})


def broken(text: str, rule: Rule) -> str:
    assert text.count(rule.right) == 1, rule
    return text.replace(rule.right, rule.broken)


def transferred(context: TrialContext, _rule: Rule) -> str:
    """What the instrument says."""
    server = context.servers.started["secondary"]
    until = time.monotonic() + WATCHED_S
    while server.process.running and time.monotonic() < until:
        time.sleep(0.05)
    errors = [line for line in server.log.read_text().splitlines() if "is broken" in line]
    return "broken" if errors else "its members"


def members(context: TrialContext, _rule: Rule) -> int:
    """How many zones the secondary has after a while."""
    return len(seen(context))


def stay(context: TrialContext, rule: Rule) -> int:
    """How many zones the secondary has when the right catalog, whose members it had, has been broken for a while."""
    had = len(seen(context, RIGHT_LIMIT_S))
    if had < ZONES:
        raise DnsrigError(f"only {had} members of the right catalog came")
    catalog = context.servers.placements["primary"].dataset / datasets.CATALOG_FILE
    text = catalog.read_text()
    changed = broken(text, rule).replace("invalid. invalid. 1 ", "invalid. invalid. 2 ")
    assert changed != text
    catalog.with_name(f"{catalog.name}.next").write_text(changed)
    context.changes.load("primary")
    context.rest(WATCHED_S)
    return len(seen(context))


def seen(context: TrialContext, limit_s: float = WATCHED_S) -> set[str]:
    """Zones that the secondary serves: as soon as it has all, else after ``limit_s``."""
    names = [zone.name for zone in context.servers.placements["secondary"].zones]
    address = str(context.spec.hosts["secondary"].address)
    found: set[str] = set()
    until = time.monotonic() + limit_s
    with inside(context.host("observer").namespace):
        while len(found) < len(names) and time.monotonic() < until:
            found = {name for name in names if served(name, address) is not None}
            time.sleep(LOOK_EVERY_S)
    context.servers.check()
    return found


def write(found: dict[str, dict[str, Any]]) -> None:
    """The table in the page of the reference."""
    rows: list[list[object]] = [
        [rule.section, rule.words, *(cell(found[secondary].get(rule.words, {})) for secondary in SECONDARIES)]
        for rule in RULES
    ]
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    shown = table(["RFC 9432", "the catalog has", *SECONDARIES.values()], rows)
    PAGE.write_text(before + MARKS[0] + "\n" + shown + "\n" + MARKS[1] + after)


def cell(found: dict[str, Any]) -> str:
    at_once, afterwards = found.get("at_once", ""), found.get("afterwards", "")
    return f"{at_once}" if afterwards == "" else f"{at_once} / {afterwards}"


if __name__ == "__main__":
    raise SystemExit(main())
