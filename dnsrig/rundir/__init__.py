"""What a run directory holds: the contract between measuring and reading.

::

    runs/<experiment>/<UTC time>-<4 letters>/
      manifest.json                    Manifest
      bisect.json                      what `dnsrig bisect` looks for, in a run that is a search
      trials/<variant id>/<repeat>/
        trial.json                     TrialRecord
        zones.arrow                    one row a zone, from `probe`
        log-<host>.arrow               one row a zone, as that server's log tells it
        profile-<host>.folded          where a host's CPU time went: stacks, folded (outermost frame first) with a count
        samples.arrow                  what `watch` saw
        statistics.arrow               a resolver's own counters, each second while it was measured
        queries.arrow                  one row a query of `load`, where `options.query_rows` asks for it; beside a
                                       simulated Internet what that was asked, one row a second and kind of query
        not-in-world.arrow             the names that it was asked for and does not have
        sockets.arrow                  TCP connections of hosts, one row a socket and interval, from `watch` (procedures
                                       that want it)
        link-<host>-<host>.arrow       what went over an emulated link, one row a direction and interval, from `link`
        clocks-<host>.arrow            clocks of other machines, one row an exchange with one
        generators/<load>/<host>/      of several generators, or one on another machine: the files of each one's own
                                       `load`, `warmup` and `ramp`, by its machine's clock
        servers/<host>/                configuration as used, log (packed when large); of the server under test
                                       defaults.txt, its defaults as it prints them
        instruments/                   standard error of the instruments
      notes.json                       what people said of it in `dnsrig browse`: a note, tags, whether it is a baseline
      findings.json                    Findings (derived)
      summary.parquet                  one row a trial and metric (derived)
      report.html                      (derived)

Times are CLOCK_MONOTONIC nanoseconds of the machine that measured, unless a name says otherwise. What was seen on
other machines is moved to that clock (`ClockRecord` says how well); in samples.arrow `machine@<name>` is another
machine as a whole.
Files are written whole or not at all: to a temporary name, synced, then renamed.

A run may come from somebody else. Links lead to a run, but none is followed inside it, and only regular files are
read: a link, a FIFO or a device in the place of a file is damage. A JSON document that is larger than 64 MiB or
nested deeply, a number beyond all counters, and a row file whose lengths contradict each other are damage, too.
Nothing is written into a run that belongs to another user: `dnsrig report` and `export` write to the cache or to
`--out`, and `--resume`, `import --to` and the notes of `dnsrig browse` refuse it.

Metrics are derived: `dnsrig report`, `compare`, `plan --from-run` and `export` compute them from what a trial recorded,
so that a new metric has a value in old runs as well. Earlier versions wrote `metrics` into trial.json: what stands
there counts only where it cannot be computed any more, because rows were deleted or the metric is no longer known.

trial.json has size and checksums of the files of rows, latencies and profiles. Of a file that was cut or damaged since,
nothing is derived; charts show what lies before the damage, and the trap `damaged-files` says how to measure the trial
again. findings.json lists under `failures` each metric, trap, chart, export and section that raised an exception, with
the line that did.
"""

from __future__ import annotations

from dnsrig.rundir.base import (
    DEFAULTS_FILE,
    FULL_PACKET_BYTES,
    NAME,
    OBSERVER,
    SCHEMA_VERSION,
    SEARCH_FILE,
    Address,
    Family,
    LinkKind,
    Name,
    Outcome,
    Record,
    Role,
    Scalar,
    Verdict,
)
from dnsrig.rundir.findings import Failure, Finding, Findings
from dnsrig.rundir.io import NewerSchema, check_ours, read_json, resume_command, trial_dir, write_json
from dnsrig.rundir.manifest import Extension, Machine, Manifest, TrialKey
from dnsrig.rundir.record import (
    Anchor,
    Check,
    ClockRecord,
    FileRecord,
    ImportedRecord,
    LogDrilldown,
    MachineRecord,
    Phase,
    Privileges,
    ProcessCounts,
    ProfileRecord,
    ServerLimit,
    ServerRecord,
    TrialRecord,
)
from dnsrig.rundir.spec import (
    DNSRIG_LOAD,
    ClockBasis,
    DatasetSpec,
    FarSpec,
    HostDuties,
    HostOptions,
    HostSpec,
    ImportedSpec,
    Level,
    LinkSpec,
    MachineSpec,
    PathSpec,
    Provisioning,
    Resolving,
    ResolvingSpec,
    ServerSource,
    StreamSpec,
    TransferSpec,
    Transport,
    TrialSpec,
    Variant,
)

__all__ = [
    "DEFAULTS_FILE",
    "DNSRIG_LOAD",
    "FULL_PACKET_BYTES",
    "NAME",
    "OBSERVER",
    "SCHEMA_VERSION",
    "SEARCH_FILE",
    "Address",
    "Anchor",
    "Check",
    "ClockBasis",
    "ClockRecord",
    "DatasetSpec",
    "Extension",
    "Failure",
    "Family",
    "FarSpec",
    "FileRecord",
    "Finding",
    "Findings",
    "HostDuties",
    "HostOptions",
    "HostSpec",
    "ImportedRecord",
    "ImportedSpec",
    "Level",
    "LinkKind",
    "LinkSpec",
    "LogDrilldown",
    "Machine",
    "MachineRecord",
    "MachineSpec",
    "Manifest",
    "Name",
    "NewerSchema",
    "Outcome",
    "PathSpec",
    "Phase",
    "Privileges",
    "ProcessCounts",
    "ProfileRecord",
    "Provisioning",
    "Record",
    "Resolving",
    "ResolvingSpec",
    "Role",
    "Scalar",
    "ServerLimit",
    "ServerRecord",
    "ServerSource",
    "StreamSpec",
    "TransferSpec",
    "Transport",
    "TrialKey",
    "TrialRecord",
    "TrialSpec",
    "Variant",
    "Verdict",
    "check_ours",
    "read_json",
    "resume_command",
    "trial_dir",
    "write_json",
]
