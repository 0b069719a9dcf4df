"""Why a server ended, by its log. The logs are of Debian's builds, with a setting that they do not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsrig.procedures.context.servers import why_it_ended

UNBOUND = """\
unbound.conf:3: error: unknown keyword 'cache-max-tl'
unbound.conf:3: error: stray ':'
read unbound.conf failed: 2 errors in configuration file
[1795656654] unbound[29034:0] fatal error: Could not read config file: unbound.conf.
"""
NSD = """\
nsd.conf:2: at 'nonsense:': error: syntax error
read nsd.conf failed: 1 errors in configuration file
[2026-11-26 01:30:54.958] nsd[29050]: error: could not read config: nsd.conf
"""
BIND = """\
26-Nov-2026 01:30:54.937 loading configuration from '/seen/named.conf'
26-Nov-2026 01:30:54.937 /seen/named.conf:1: unknown option 'max-cache-tl'
26-Nov-2026 01:30:54.937 exiting (due to fatal error)
"""
KNOT = """\
2026-11-26T01:30:54+0000 error: config, file 'knot.conf', line 2, item 'nonsense', value '1' (invalid item)
2026-11-26T01:30:54+0000 critical: failed to load configuration file 'knot.conf' (invalid item)
"""
RECURSOR = """\
Nov 26 01:30:55 msg="Processing main YAML settings" path="/seen/recursor.conf"
Nov 26 01:30:55 msg="error" error="incoming: unknown field `nonsense` at line 2" configname="/seen/recursor.conf"
Nov 26 01:30:55 msg="Fatal error" error="Trying to set unknown setting 'incoming:'"
"""


@pytest.mark.parametrize(
    ("configuration", "log", "names", "number"),
    [
        ("unbound.conf", UNBOUND, "unknown keyword 'cache-max-tl'", 1),
        ("nsd.conf", NSD, "at 'nonsense:'", 1),
        ("named.conf", BIND, "unknown option 'max-cache-tl'", 2),
        ("knot.conf", KNOT, "item 'nonsense'", 1),
        ("recursor.conf", RECURSOR, "unknown field `nonsense`", 2),
    ],
)
def test_a_refused_setting_is_named(tmp_path: Path, configuration: str, log: str, names: str, number: int) -> None:
    file = tmp_path / "servers/resolver/server.log"
    file.parent.mkdir(parents=True)
    (file.parent / configuration).touch()
    file.write_text(log)
    said = why_it_ended(file)
    assert names in said and f"(line {number} of servers/resolver/server.log)" in said
    assert said.endswith(f"; last: {log.splitlines()[-1]}")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", ""),
        ("started\nkilled\n", ": killed"),
        # Not its configuration: a line of a log that has both a name and a time.
        ("12:30 read named.conf\nout of memory\n", ": out of memory"),
        ("named.conf:7: no such zone\n", ": named.conf:7: no such zone (line 1 of {where})"),
    ],
)
def test_other_ends_have_the_last_line(tmp_path: Path, log: str, said: str) -> None:
    (tmp_path / "named.conf").touch()
    file = tmp_path / "server.log"
    file.write_text(log)
    assert why_it_ended(file) == said.format(where="/".join(file.parts[-3:]))
