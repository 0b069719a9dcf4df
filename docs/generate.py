"""Writes docs/reference/, the picture of the architecture and tables in READMEs from the code: they say what the code
says."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from functools import partial
from pathlib import Path
from typing import Any, get_args

import architecture_picture
import manual
from pydantic import BaseModel

import dnsrig
from dnsrig import confinement, datasets, paths, procedures, streams
from dnsrig.checks import all_checks
from dnsrig.cli import _app
from dnsrig.cli._exits import EVERY, STATUS
from dnsrig.cli._former import FORMER
from dnsrig.cli.engine import SUBCOMMANDS
from dnsrig.experiment import estimate, model, trial_specs
from dnsrig.experiment.trial import declared_checks
from dnsrig.lab import sites
from dnsrig.metrics import all_metrics
from dnsrig.procedures import all_procedures
from dnsrig.query_files import QueriesDocument
from dnsrig.rundir import Level, Resolving, ServerDescription, TransferSpec
from dnsrig.servers import all_drivers, feature_table
from dnsrig.servers.running import RUNNING
from dnsrig.traps import GROUPS, all_traps

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/reference"
LINE_COLUMNS = 120
HEAD = "<!-- Written by `make docs` from the code. -->\n\n"


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [
        head,
        ["---"] * len(head),
        *[[str(cell).replace("|", "\\|").replace("\n", " ") for cell in r] for r in rows],
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


COMMANDS = """\
Standard output is data; progress and prose go to standard error. Scripts look at the [exit status](exit-status.md).
Durations have a unit: `200ms`, `5s`, `2m`, `1h`. `--json` prints [one JSON document](json.md).

`dnsrig --version` prints two lines:

- `dnsrig VERSION`, in a checkout followed by ` (commit COMMIT)`, with `-dirty` after the commit if files are changed;
- `dnsrig-engine VERSION (profile PROFILE)`; in an engine from a wheel the parentheses also contain the commit.

`dnsrig --install-completion` installs completion for the shell that it is started from, and `dnsrig --show-completion`
prints the script: bash, zsh, fish or PowerShell. `man -l docs/reference/dnsrig.1` shows this page as a manual page.
"""


def commands() -> str:
    text = f"# Commands\n\n{in_paragraphs(COMMANDS)}"
    leaves = dict(_leaves(_app.command_line()))
    order = [name for group in _app.GROUPS.values() for name in group]
    for name in sorted(
        leaves, key=lambda name: order.index(name.split()[0]) if name.split()[0] in order else len(order)
    ):
        if name in SUBCOMMANDS:
            continue
        text += f"\n## dnsrig {name}\n\n{(leaves[name].help or '').strip()}\n\n"
        rows = []
        for parameter in leaves[name].params:
            if parameter.param_type_name == "option":
                value = f" {parameter.metavar}" if parameter.metavar else ""
                rows.append([f"`{'`, `'.join(parameter.opts)}{value}`", parameter.help or ""])
            else:
                rows.append(
                    [f"`{(parameter.metavar or parameter.name or '').upper()}`", getattr(parameter, "help", "") or ""]
                )
        text += table(["argument", "meaning"], rows) if rows else ""
    text += "\n## Former names of options\n\nThese names of earlier versions are still read. No help shows them.\n\n"
    text += table(
        ["command", "former name", "name"],
        [[f"`{command}`", f"`{old}`", f"`{new}`"] for command, names in FORMER.items() for old, new in names.items()],
    )
    text += "\n## Instruments\n\nThese commands are the engine's. They get all their arguments unchanged.\n"
    for name in SUBCOMMANDS:
        for words in _engine_commands(name):
            help_text = _help(words)
            text += f"\n### dnsrig {' '.join(words)}\n\n```text\n{help_text.strip()}\n```\n"
    return text


def _help(words: list[str]) -> str:
    """The help as on a terminal of 100 columns, whatever this one has."""
    command = ["dnsrig", *words, "--help"]
    environment = {**os.environ, "COLUMNS": "100"}
    engine = paths.engine()
    return subprocess.run(
        command, executable=engine, capture_output=True, text=True, check=True, env=environment
    ).stdout


def _leaves(command: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if hasattr(command, "commands"):
        return [leaf for name, sub in command.commands.items() for leaf in _leaves(sub, f"{prefix}{name} ")]
    return [(prefix.strip(), command)]


def _engine_commands(name: str) -> list[list[str]]:
    more = {
        "generate": [["generate", "zones"], ["generate", "tld"], ["generate", "clients"], ["generate", "world"]],
        "probe": [["probe"], ["probe", "follow"]],
        "replay": [["replay", "prepare"], ["replay", "describe"], ["replay", "play"], ["replay", "compare"]],
    }
    return more.get(name, [[name]])


TABLES: dict[type[BaseModel], str] = {
    model.Document: "",
    model.HostDocument: "Keys of a host, under `[hosts.NAME]`:",
    ServerDescription: "Keys of a server [without a driver](described-servers.md), under `[servers.NAME]`:",
    Resolving: "Keys of a resolver, under `[hosts.resolver.resolving]`:",
    TransferSpec: "Keys of zone transfers, under `[transfer]`:",
    model.PathDocument: "Keys of an emulated path, under `[path]`, for the direction of the zones:",
    QueriesDocument: "Keys of queries of your own, and of their EDNS, under `[queries]` ([how](../how-to/own-queries.md)):",
    model.DirectionDocument: "Keys of the direction back, under `[path.reverse]`, if it differs:",
}
"""The tables of an experiment, and the sentence above the keys of each."""


TRUST = """\
An experiment may come from somebody else. `--dry-run` executes nothing that the file names, and sends nothing.
`dnsrig run` needs root unless the server runs already, and a file decides this much:

- **Servers** run with the settings of the file. Of `KIND@/path`, `KIND@system` and `KIND@git:REF`, programs run that the
  file chooses, and scripts that build them. Of `[servers.NAME]`, any command runs. All are confined ([how](servers.md#what-they-may-do)): they can write only in
  folders of their trial and in memory. They can read what the user nobody can read on this machine, except in `/home`,
  `/root`, `/tmp`, `/var/tmp`, `/mnt` and `/run`. They can use CPU time and memory as long as the trial lasts, and send
  packets only to hosts of the trial.
- **Hosts** get addresses, links, and sysctls below `net.` in network namespaces of their own. With `nic`, a host takes an
  interface of the machine away until the trial ends, and its programs reach whatever is behind it.
- **A server that runs already** (`running@ADDRESS`) is loaded at the rate of the file if its address is loopback. Any other
  address needs `--i-am-authorized` on your command line, and then your rate.
- **A stream** of kind `capture` and `[queries]` name files, which dnsrig reads with the rights of the run. So do
  `config` and `include` of a host: their text goes to a server, and into the run. As [templates](configuration.md) they
  are rendered by a process without rights.

You trust the kernel, Debian's signed packages, the repositories that builds are fetched from, and dnsrig. Look at `nic`,
at running servers, at captures and at files of queries in an experiment before you run it.
"""


RUNNING_MORE = """\
[Its how-to](../how-to/running-server.md) has an example, and the procedures that can measure it. Other procedures are refused, and so are settings of the server, of its host and of links.

| of a running server | how it is known |
| --- | --- |
| version and identity | what it answers to `version.bind` and `id.server` (TXT, class CH); otherwise `unknown` |
| CPU time, memory, socket drops | not at all: traps and checks that need them report `cannot tell` |
| settings, log, socket buffers, links | not at all |
| whether it is there | it is asked before the run, and at the beginning and the end of each trial |
"""


CHOOSE = """\
# Which experiment answers my question?

The built-in experiments, grouped by the readers who ask their questions. `dnsrig run NAME` runs an experiment at the
scale `quick`, `dnsrig run NAME --scale standard` with more variants, repeats and data. A quick run shows that
everything works and what a report looks like; draw conclusions from a standard run.

The times are estimates: they assume that nothing else runs on the machine, and do not include the time to install
servers and to generate datasets. If trials reach their time limits, a run takes longer: `dnsrig run NAME --dry-run`
shows the longest possible time. [Experiments](../reference/experiments.md) describes the keys of these files, [write
your own experiment](experiment.md) how to change them.
"""


def choose() -> str:
    """The page that leads from a question to an experiment."""
    text = in_paragraphs(CHOOSE)
    for audience, found in model.by_audience().items():
        text += f"\n## {_capital(audience)}\n\n"
        text += table(
            ["question", "experiment", "`quick`", "`standard`"],
            [
                [
                    raw["question"],
                    f"[{name}](../../{model.builtin()[name].relative_to(ROOT)})",
                    *map(partial(_size, name), model.SCALES[:2]),
                ]
                for name, raw in found.items()
            ],
        )
    return text


def _size(name: str, scale: str) -> str:
    """How many trials a built-in experiment has at ``scale``, and about how long they take."""
    document = model.load(model.builtin()[name], scale, [])
    if document.kernel == "auto":  # so that the page does not depend on the kernel of the machine that writes it
        needs_uml = any(
            host.congestion not in (None, "cubic", "reno")
            for p in model.points(document)
            for host in p.document.hosts.values()
        )
        document = document.model_copy(update={"kernel": "uml" if needs_uml else "running"})
    specs = [trial_specs.provisional(name, point, [0, 1]) for point in model.points(document)]
    minutes = document.repeats * estimate.of_run(specs).expected_s / 60
    time = f"{max(1, round(minutes))} min" if minutes < 90 else f"{round(minutes / 60)} h"
    return f"{len(specs) * document.repeats} trials, {time}"


def experiments() -> str:
    text = "# Experiments\n\n[Which experiment answers my question?](../how-to/choose-an-experiment.md) lists the built-in "
    text += "experiments by question. Their variants and repeats at each scale:\n\n"
    rows = []
    for name, path in model.builtin().items():
        sizes = [
            f"{len(model.points(document))} × {document.repeats}"
            for document in (model.load(path, scale, []) for scale in model.SCALES)
        ]
        rows.append([f"[{name}](../../{path.relative_to(ROOT)})", tomllib.loads(path.read_text())["title"], *sizes])
    text += table(["name", "title", *(f"`{scale}`" for scale in model.SCALES)], rows)
    text += f"\n## What a file may do\n\n{in_paragraphs(TRUST)}\n## Keys\n"
    for part, heading in TABLES.items():
        text += f"\n{heading}\n\n" if heading else "\n"
        text += table(["key", "default", "meaning"], _fields(part))
    text += f"\nSites: {', '.join(f'`{name}`' for name in sites.all_sites())}.\n\nDistributions of round trips:\n\n"
    text += "".join(f"- `{name}`: {found.source}\n" for name, found in sites.DISTRIBUTIONS.items())
    text += "\n## Datasets\n\n"
    for name, module in datasets.kinds().items():
        text += f"`{name}`: {module.DESCRIPTION}. Parameters: "
        text += ", ".join(f"`{k}`" + (f" ({v})" if v != "" else "") for k, v in module.DEFAULTS.items()) + ".\n\n"
    text += "## Streams\n\nStreams for the procedure `replay`, under `[stream]`.\n\n"
    for name, module in streams.kinds().items():
        text += f"`{name}`: {module.DESCRIPTION}. Parameters: "
        text += ", ".join(f"`{k}`" + (f" ({v})" if v != "" else "") for k, v in module.DEFAULTS.items()) + ".\n\n"
    text += "## Procedures\n\n"
    for name, module in all_procedures().items():
        text += (
            f"`{name}`: {module.DESCRIPTION}. Hosts: {', '.join(procedures.hosts(module, module.OPTIONS))}. Options: "
        )
        text += ", ".join(f"`{k}` ({v})" for k, v in module.OPTIONS.items()) + ".\n\n"
    return text


def _fields(part: type[model.Part]) -> list[list[object]]:
    """Its own fields first, then those that it has in common with what is stored."""
    rows = []
    for name, field in sorted(part.model_fields.items(), key=lambda item: item[0] not in part.__annotations__):
        default = "required" if field.is_required() else "" if field.default_factory else field.default
        rows.append([f"`{name}`", "" if default is None else default, field.description or ""])
    return rows


def servers() -> str:
    text = "# Servers\n\nA server is named `KIND@SOURCE`. The source is `system`, a Debian suite, the prefix of your own build, or `git:REF`, a commit of its repository.\n"
    text += f"\n## Running servers\n\n{in_paragraphs(sys.modules[type(RUNNING).__module__].__doc__ or '').strip()}\n\n{RUNNING_MORE}"
    text += "\n## Features\n\nThe versions since which servers have a feature, by role. dnsrig refuses an experiment that needs more before it starts.\n\n"
    text += table(["as", "feature", *all_drivers()], [[role, what, *since] for role, what, since in feature_table()])
    for kind, driver in all_drivers().items():
        for role, clash in driver.never_together.items():
            text += f"\n{kind} as {role} cannot combine {' and '.join(sorted(clash))}.\n"
    text += _privileges()
    text += _resolvers()
    for kind, driver in all_drivers().items():
        text += f"\n## {kind}: {driver.title}\n\n{inspect.cleandoc(type(driver).__doc__ or sys.modules[type(driver).__module__].__doc__ or '')}\n\n"
        packages = (
            f"Debian packages {', '.join(driver.packages)}"
            if driver.packages
            else f"only as `{kind}@{driver.only_source}`"
        )
        text += f"Program `{driver.executable}`; {packages}. Roles: {', '.join(driver.roles)}. "
        if driver.recipe is not None:
            text += f"`{kind}@git:REF` is built from {driver.recipe.repository}. "
        text += f"Its log's clock has a resolution of {driver.log_clock_resolution_ns / 1e9:g} s.\n\n"
        text += "Settings that decide performance (any other is passed on as well):\n\n"
        text += table(
            ["setting", "default", "meaning"], [[f"`{s.name}`", s.default, s.meaning] for s in driver.settings]
        )
        limits = driver.limits("secondary", {})
        for limit in limits:
            text += f"\nAs a secondary at its defaults: `{limit.setting}` = {limit.value} "
            if limit.effect == "rate":
                text += f"allows {limit.zones_per_s:g} zones a second.\n"
            elif limit.effect == "timer":
                text += f"makes it wait for up to {limit.timer_s:g} s.\n"
            else:
                text += "makes it wait with answers until all zones are there.\n"
    return text


def _privileges() -> str:
    """What confines servers, and which capabilities each keeps."""
    text = f"\n## What they may do\n\n{in_paragraphs(confinement.__doc__ or '').strip()}\n\n"
    text += (
        "Servers keep these capabilities. A trial records the capabilities that the kernel reports for its server.\n\n"
    )
    return text + table(
        ["capability", "servers"],
        [
            [f"`{name}`", ", ".join(kind for kind, driver in all_drivers().items() if name in driver.capabilities)]
            for name in sorted({name for driver in all_drivers().values() for name in driver.capabilities})
        ],
    )


def _resolvers() -> str:
    able = {kind: driver.as_resolver for kind, driver in all_drivers().items() if driver.as_resolver is not None}
    text = (
        "\n## Resolvers\n\nThe settings with which each resolver implements the DNSSEC levels and the common settings "
    )
    text += "([why](../explanation/resolvers.md)). dnsrig refuses unsupported values before a trial.\n\n"
    rows = [
        [f"`{level}`", *(r.levels.get(level) or f"no: {r.lacking_levels[level]}" for r in able.values())]
        for level in get_args(Level)
    ]
    rows += [
        [f"`{name}`", *(r.words.get(name) or f"fixed: {r.fixed[name]}" for r in able.values())]
        for name in Resolving.model_fields
        if name != "level"
    ]
    return text + table(["level, setting", *able], rows)


def metrics() -> str:
    rows = [[f"`{m.name}`", m.unit, m.better, m.definition] for m in all_metrics().values()]
    return "# Metrics\n\n" + table(["metric", "unit", "better", "definition"], rows)


def checks() -> str:
    text = "# Manipulation checks\n\nA check verifies, from records on the hosts, that a trial measured what its variant's name says. If a check fails, "
    text += "the trial is `invalid`, with the reason. If data are missing, the verdict is `cannot-tell`, which is shown. trial.json contains the "
    text += "checks of a trial with their numbers; the report and the end of `dnsrig run` show them.\n\n"
    listed = sorted(all_checks().values(), key=lambda check: check.name)
    text += "".join(f"- [{check.name}](#{check.name}): {check.title}\n" for check in listed)
    text += "\n## Experiments\n\nThe checks of each experiment, for any of its variants at `quick`:\n\n"
    rows = []
    for name, path in model.builtin().items():
        points = model.points(model.load(path, "quick", []))
        declared = [
            check for point in points for check in declared_checks(trial_specs.provisional(name, point, [0, 1]))
        ]
        rows.append([f"`{name}`", ", ".join(f"[{check}](#{check})" for check in dict.fromkeys(declared)) or "none"])
    text += table(["experiment", "checks"], rows)
    for check in listed:
        unit = check.unit if not check.unit or check.unit.startswith("for ") else f"in {check.unit}"
        text += f"\n## {check.name}\n\n{_capital(check.title)}{f', {unit}' if unit else ''}.\n\n{in_paragraphs(check.definition).strip()}\n"
    return text


def traps() -> str:
    text = "# Traps\n\nKnown ways in which a measurement can mislead. dnsrig looks for each trap in every run. The verdict is `found`, "
    text += "`clear`, or `cannot-tell` if data are missing.\n\n"
    groups = {group: [trap for trap in all_traps().values() if trap.group == group] for group in GROUPS}
    groups = {_capital(group): sorted(found, key=lambda trap: trap.id) for group, found in groups.items() if found}
    for group, found in groups.items():
        text += f"- {group}\n" + "".join(f"  - [{trap.id}](#{trap.id}): {trap.title}\n" for trap in found)
    for group, found in groups.items():
        text += f"\n## {group}\n"
        for trap in found:
            doc = in_paragraphs(trap.module.__doc__ or "").strip()
            text += f"\n### {trap.id}\n\n{doc}\n\nSource: {trap.source}.\n"
    return text


def exit_status() -> str:
    rows = [
        [f"`{command}`" if command != EVERY else command, status, meaning]
        for command, told in STATUS.items()
        for status, meaning in told.items()
    ]
    text = "# Exit status\n\nA status that a command does not list has the meaning that it has for every command. The engine's commands use the same statuses.\n\n"
    return text + table(["command", "status", "meaning"], rows)


def run_directory() -> str:
    from dnsrig import rundir

    doc = (rundir.__doc__ or "").replace("::\n\n", "\n```text\n", 1).replace("\n\nTimes are", "\n```\n\nTimes are")
    return f"# The run directory\n\nSchema version {rundir.SCHEMA_VERSION}.\n\n{doc.strip()}\n"


def certificates() -> str:
    from dnsrig import certificate

    doc = (
        (certificate.__doc__ or "")
        .replace("::\n\n", "\n```text\n", 1)
        .replace("\n\nThe manifest of", "\n```\n\nThe manifest of", 1)
    )
    return f"# The certificate of a calibration\n\nVersion {certificate.CERTIFICATE_VERSION}.\n\n{doc.strip()}\n"


def world() -> str:
    defaults = (ROOT / "engine/dnsrig-engine/src/world/defaults.toml").read_text()
    return (
        "# The specification of a world\n\nWhat `generate world` writes and `serve world` reads: every field with its "
        "default and its source. [A simulated Internet](../explanation/world.md) says what is made of it.\n\n"
        f"```toml\n{defaults}```\n"
    )


PAGES = {
    "commands.md": commands,
    "exit-status.md": exit_status,
    "experiments.md": experiments,
    "servers.md": servers,
    "metrics.md": metrics,
    "traps.md": traps,
    "checks.md": checks,
    "run-directory.md": run_directory,
    "certificate.md": certificates,
    "world.md": world,
}

WRITTEN_BY_HAND = (
    "configuration.md",
    "json.md",
    "dnsperf.md",
    "stream.md",
    "catalog-zones.md",
    "described-servers.md",
    "primary-faults.md",
    "proxy-protocol.md",
    "figures.md",
    "limits.md",
    "glossary.md",
)
"""Pages of the reference that are not generated from the code."""


def pages() -> dict[str, str]:
    """File name -> text."""
    names = (*PAGES, *WRITTEN_BY_HAND)
    index = "# Reference\n\n" + "".join(f"- [{name.removesuffix('.md').replace('-', ' ')}]({name})\n" for name in names)
    return {"README.md": HEAD + index} | {name: HEAD + in_short_lines(write()) for name, write in PAGES.items()}


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def in_paragraphs(text: str) -> str:
    """``text`` with each paragraph, and each entry of a list, in one line: `in_short_lines` then breaks it anew."""
    return re.sub(r"(?<=\S)\n +(?=\S)|(?<=\S)\n(?=[^\s-])", " ", text)


def in_short_lines(text: str) -> str:
    """``text`` with prose in lines of at most 120 characters; code and tables are as they were."""
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if number % 2 else "\n".join(map(_short, part.split("\n"))) for number, part in enumerate(parts)
    )


def _short(line: str) -> str:
    if len(line) <= LINE_COLUMNS or line.startswith(("|", "#")):
        return line
    indent = "  " if line.startswith("- ") else ""
    wrapped = textwrap.wrap(
        line, LINE_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    # A dash at the beginning of a line would make it an item of a list.
    return "\n".join(wrapped).replace(f"\n{indent}- ", f" -\n{indent}")


def manual_page() -> str:
    return manual.page(_app.GROUPS, dict(_leaves(_app.command_line())), SUBCOMMANDS, STATUS, dnsrig.__version__)


def subcommands() -> str:
    """The engine's, as its help says; `enter`, which only the rig uses, is not in the list there."""
    rows = []
    for command in [*(name for name, _ in _subcommands_of(_help([]))), "enter"]:
        text = _help([command])
        rows.append([f"`{command}`", _headline(text)])
        rows += [[f"`{command} {sub}`", says] for sub, says in _subcommands_of(text)]
    return table(["subcommand", "does"], rows)


def _subcommands_of(text: str) -> list[tuple[str, str]]:
    """Name and headline of each in a help text; some have their own in two lines."""
    _, _, commands = text.partition("\nCommands:\n")
    found = re.findall(r"^  (\w+) +(.+(?:\n {6,}.+)*)", commands.partition("\n\n")[0], re.MULTILINE)
    return [(name, " ".join(says.split())) for name, says in found if name != "help"]


def _headline(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).rstrip(".")


def shared_folders() -> str:
    return table(
        ["crate or folder", "has"],
        [
            [f"`{architecture_picture.label(name)}/`", architecture_picture.first_sentence(name)]
            for name in architecture_picture.SHARED
        ],
    )


def benches() -> str:
    rows = []
    for path in sorted((ROOT / "benches").glob("*.py")):
        says = ast.get_docstring(ast.parse(path.read_text())) or ""
        rows.append([f"`{path.name}`", _headline(says)])
    return table(["file", "answers"], rows)


PARTS = {
    "engine/README.md": {"subcommands": subcommands, "shared folders": shared_folders},
    "benches/README.md": {"benches": benches},
}
"""File -> its generated parts, each between two comments that name it."""


def with_parts(file: str) -> str:
    """A file with its generated parts written anew."""
    text = (ROOT / file).read_text()
    for name, write in PARTS[file].items():
        start, end = f"<!-- {name}: written by `make docs` -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(start)
        assert found, f"{file} has no line {start}"
        text = before + start + "\n" + write() + "\n" + end + rest.partition(end)[2]
    return text


def files() -> dict[str, str]:
    """Path in the repository -> text, of all that is generated, wholly or in part."""
    written = {f"docs/reference/{name}": text for name, text in pages().items()}
    written |= {"docs/reference/dnsrig.1": manual_page(), "docs/pictures/architecture.svg": architecture_picture.draw()}
    written["docs/how-to/choose-an-experiment.md"] = HEAD + in_short_lines(choose())
    return written | {file: with_parts(file) for file in PARTS}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        (ROOT / path).write_text(text)
