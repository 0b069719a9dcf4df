"""The page of limits states the limits of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsrig import datasets, files, foreign, importers, parameters
from dnsrig.browse import notes
from dnsrig.experiment import path, runner, trial_specs, versions
from dnsrig.experiment.bisection import candidates
from dnsrig.servers.builds import build, kept, repository, steps
from dnsrig.streams import population

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/limits.md").read_text()
MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    "row",
    [
        f"| trials of a run | {trial_specs.MAX_TRIALS:,} |",
        f"| records of a dataset | {datasets.MOST_RECORDS:,} |",
        f"| queries of a made population | {population.MOST_QUERIES:,} |",
        f"| emulated links of a trial | {path.MOST_FAR_LINKS} |",
        f"| builds of a range `FIRST..LAST` | {steps.MOST_STEPS} |",
        f"| candidates of `bisect` | {candidates.MOST_CANDIDATES:,} |",
        f"| runs of a history | {versions.MOST_RUNS:,} |",
        f"| failed trials in a row | {runner.ERRORS_IN_A_ROW};",
        f"| one build | {build.BUILD_LIMIT_S:,} s |",
        f"| fetching a repository | {repository.FETCH_LIMIT_S:,} s |",
        f"| free disk space before a build | {build.LEAST_FREE_BYTES / 1e9:g} GB |",
        f"| builds that are kept | {kept.DEFAULT_LIMIT_GB:g} GB;",
        f"| size of a file | {foreign.MOST_BYTES // GIB} GiB |",
        f"| JSON | {foreign.MOST_JSON_BYTES // MIB} MiB; {foreign.MOST_VALUES:,} values; {foreign.MOST_CONTAINERS:,} ",
        f"| TOML | {foreign.MOST_TOML_BYTES // MIB} MiB |",
        f"| rows, lines or objects that are kept | {foreign.MOST_ROWS:,} |",
        f"| nesting | {foreign.DEEPEST} levels |",
        f"| a compressed histogram | {foreign.MOST_INFLATED_BYTES // MIB} MiB ",
        f"{importers.MOST_BUCKETS:,}; {importers.MOST_BUCKETS_OF_ALL:,} in all stretches |",
        f"| a latency | {importers.LONGEST_NS // importers.S:,} s |",
        f"| a file of rows | {files.MOST_BYTES // GIB} GiB |",
        f"| a JSON document | {files.MOST_DOCUMENT_BYTES // MIB} MiB; {files.MOST_VALUES:,} values |",
        f"| a note in `browse` | {notes.MOST_CHARACTERS:,} characters, and {notes.MOST_TAGS} tags |",
    ],
)
def test_the_page_has_the_limit(row: str) -> None:
    assert row in PAGE


@pytest.mark.parametrize(
    ("names", "unit"),
    [
        (["clients", "connections", "flood_clients"], ""),
        (["secondaries"], ";"),
        (["primaries", "threads"], ""),
        (["generators"], ""),
        (["timeout_s"], " s"),
        (["speed"], ""),
        (["query_rows"], ""),
        (["window", "transfers_window"], ""),
        (["records_changed"], ""),
    ],
)
def test_the_page_has_the_range(names: list[str], unit: str) -> None:
    ends = {parameters.range_of(name, {}) for name in names}
    assert len(ends) == 1
    ((least, most),) = ends
    assert f"| {', '.join(f'`{name}`' for name in names)} | {least:,} to {most:,}{unit}" in PAGE
