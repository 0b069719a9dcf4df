"""The content of a run directory: the contract between the part that measures and the part that reads.

::

    runs/<experiment>/<UTC time>-<4 letters>/
      manifest.json                    Manifest
      bisect.json                      the target of `dnsrig bisect`, in a run that is a search
      trials/<variant id>/<repeat>/
        trial.json                     TrialRecord
        zones.arrow                    one row a zone, from `probe`
        log-<host>.arrow               one row a zone, from the log of that server
        profile-<host>.folded          CPU stacks of a host, folded (outermost frame first), each with a count
        samples.arrow                  the samples of `watch`
        statistics.arrow               the resolver's own counters, each second of the measurement
        queries.arrow                  one row a query of `load`, if `options.query_rows` is set; on a simulated
                                       Internet the queries that it received, one row a second and kind of query
        not-in-world.arrow             the names in these queries that it does not have
        sockets.arrow                  TCP connections of hosts, one row a socket and interval, from `watch`, for
                                       procedures that need it
        link-<host>-<host>.arrow       traffic over an emulated link, one row a direction and interval, from `link`
        clocks-<host>.arrow            clocks of other machines, one row an exchange
        generators/<load>/<host>/      with several generators, or one on another machine: the files of each generator's
                                       `load`, `warmup` and `ramp`, by the clock of its machine
        servers/<host>/                configuration as used, log (compressed if large); for the server under test
                                       defaults.txt, the defaults that it prints
        instruments/                   standard error of the instruments
      notes.json                       from `dnsrig browse`: a note, tags, whether the run is a baseline
      findings.json                    Findings (derived)
      summary.parquet                  one row a trial and metric (derived)
      report.html                      (derived)

Times are CLOCK_MONOTONIC nanoseconds of the machine that measured, unless the name of a field says otherwise. Times
from other machines are converted to that clock (`ClockRecord` has the error). In samples.arrow, `machine@<name>` is
another machine as a whole. Each file is written to a temporary name, synced, and then renamed.

A run may come from somebody else. Links lead to a run, but none is followed inside it, and only regular files are
read: a link, a FIFO or a device in the place of a file is damage. A JSON document that is larger than 64 MiB or
nested deeply, a number beyond all counters, and a row file whose lengths contradict each other are damage, too.
Nothing is written into a run that belongs to another user: `dnsrig report` and `export` write to the cache or to
`--out`, and `--resume`, `import --to` and the notes of `dnsrig browse` refuse it.

Metrics are derived: `dnsrig report`, `compare`, `plan --from-run` and `export` compute them from the record of a trial,
so that a new metric has a value in old runs as well.

trial.json has the size and the checksums of the files of rows, latencies and profiles. If such a file was cut or
damaged since, no metric is derived from it; charts show the rows before the damage, and the trap `damaged-files`
explains how to measure the trial again. Under `failures`, findings.json lists each metric, trap, chart, export and
section that raised an exception, with the line that raised it.
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
    Name,
    Outcome,
    Record,
    Role,
    Scalar,
    Settings,
    Verdict,
)
from dnsrig.rundir.findings import Failure, Finding, Findings
from dnsrig.rundir.io import NewerSchema, check_ours, read_json, resume_command, trial_dir, write_json
from dnsrig.rundir.manifest import Extension, Machine, Manifest, TrialKey, Until
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
    ANSWERS,
    DNSRIG_LOAD,
    ClockBasis,
    DatasetSpec,
    DescribedServer,
    FarSpec,
    HostDuties,
    HostOptions,
    HostSpec,
    ImportedSpec,
    Level,
    LinkSpec,
    MachineSpec,
    OwnFile,
    PathSpec,
    Provisioning,
    QueriesSpec,
    Resolving,
    ServerDescription,
    ServerSource,
    StreamSpec,
    TransferSpec,
    Transport,
    TrialSpec,
    Variant,
)

__all__ = [
    "ANSWERS",
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
    "DescribedServer",
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
    "LinkSpec",
    "LogDrilldown",
    "Machine",
    "MachineRecord",
    "MachineSpec",
    "Manifest",
    "Name",
    "NewerSchema",
    "Outcome",
    "OwnFile",
    "PathSpec",
    "Phase",
    "Privileges",
    "ProcessCounts",
    "ProfileRecord",
    "Provisioning",
    "QueriesSpec",
    "Record",
    "Resolving",
    "Role",
    "Scalar",
    "ServerDescription",
    "ServerLimit",
    "ServerRecord",
    "ServerSource",
    "Settings",
    "StreamSpec",
    "TransferSpec",
    "Transport",
    "TrialKey",
    "TrialRecord",
    "TrialSpec",
    "Until",
    "Variant",
    "Verdict",
    "check_ours",
    "read_json",
    "resume_command",
    "trial_dir",
    "write_json",
]
