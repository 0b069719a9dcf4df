"""The command line: one clear sentence for each bad input, and an exit status that scripts can use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import output

from dnsrig.cli import _dry_run
from dnsrig.servers.sources import system


@pytest.mark.parametrize(
    ("arguments", "status", "message", "hint"),
    [
        (["run", "tuor"], 2, "there is no experiment 'tuor'", "did you mean tour?"),
        (["run"], 2, "no experiment is given", "dnsrig list experiments"),
        (["run", "tour", "--scale", "big"], 2, "there is no scale 'big'", "quick, standard, published"),
        (["history", "tour", "--versions", "bind@forky", "--scale", "big"], 2, "there is no scale 'big'", "standard"),
        (
            ["run", "tour", "--set", "server=tinydns@forky"],
            2,
            "there is no server called 'tinydns'",
            "known servers: bind",
        ),
        (["run", "tour", "--set", "limit=3"], 2, "unknown key limit", "did you mean limit_s?"),
        (["run", "tour", "--set", "limit_s=1 min"], 2, "limit_s = '1 min'", "number of seconds"),
        (["run", "tour", "--set", "dataset.kind=huge"], 2, "no dataset of kind 'huge'", "tiny-zones"),
        (["run", "tour", "--set", "dataset.zone=3"], 2, "dataset tiny-zones has no 'zone'", "zones"),
        (["run", "tour", "--repeats", "1000", "--set", "zones=[1,2,3]"], 2, "12,000 trials", "--max-trials"),
        (["run", "--resume", "nowhere"], 1, "manifest.json does not exist", "run directory"),
        (["run", "tour", "--resume", "nowhere"], 2, "--resume takes no experiment", ""),
        (["report", "nowhere"], 1, "there is no run at nowhere", ""),
        (["list", "colours"], 2, "nothing called 'colours'", "experiments, procedures, datasets, streams, servers"),
        (["servers", "install", "tinydns@forky"], 2, "no server called 'tinydns'", ""),
    ],
)
def test_bad_input(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
    hint: str,
) -> None:
    code, out, err = output(monkeypatch, capsys, *arguments)
    assert (code, out) == (status, "")
    assert err.startswith("dnsrig: ") and message in err and hint in err
    assert "Traceback" not in err


def test_without_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    code, _, err = output(monkeypatch, capsys, "run", "tour")
    assert code == 1
    assert "needs root" in err and "sudo" in err


def test_dry_run_needs_neither_root_nor_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "empty"))
    code, out, _ = output(monkeypatch, capsys, "run", "tour", "--dry-run", "--seed", "7")
    assert code == 0
    assert "8 variants × 2 repeats = 16 trials" in out
    assert "order (seed 7)" in out and "time: about" in out
    assert "bind@forky is not installed yet" in out
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "startup", "--dry-run", "--set", "server={}"),
        ("history", "startup", "--dry-run", "--versions", "{}"),
    ],
)
@pytest.mark.parametrize("where", ["prefix", "system"])
def test_a_dry_run_executes_no_program_of_a_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], where: str
) -> None:
    """Where a server's programs are is written in an experiment, and that may be somebody else's."""
    (tmp_path / "sbin").mkdir()
    program = tmp_path / "sbin/named"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\necho BIND 9.18.1\n")
    program.chmod(0o755)
    monkeypatch.setattr(system, "FOLDERS", (str(tmp_path / "sbin"),))
    name = f"bind@{tmp_path if where == 'prefix' else 'system'}"

    def refuse(*arguments: object, **_: object) -> None:
        raise AssertionError(f"{arguments} was executed")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    said = [word.format(name) for word in words]
    code, out, err = output(monkeypatch, capsys, *said, *(["--out", tmp_path] if words[0] == "history" else []))
    assert (code, err) == (0, "") and "time: about" in out
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(("settings", "said"), [([], False), (["hosts.secondary.settings.nsd.misspelt=1"], True)])
def test_a_dry_run_says_that_it_does_not_try_settings_of_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: list[str], said: bool
) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    code, out, _ = output(monkeypatch, capsys, "run", "tour", "--dry-run", *words)
    assert code == 0 and ("the first trial shows whether they are correct" in " ".join(out.split())) is said


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        ("3", "the least p is 0.3: no difference can be told from chance; at least 5 repeats are needed"),
        ("10", "the least p is 0.0059 (after Holm)"),
    ],
)
def test_dry_run_says_what_so_many_repeats_can_show(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repeats: str, said: str
) -> None:
    code, out, _ = output(monkeypatch, capsys, "run", "zone-load", "--dry-run", "--repeats", repeats)
    assert code == 0
    assert said in " ".join(out.split())


def test_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/runs/x")

    monkeypatch.setattr("dnsrig.experiment.preparation.draft", full)
    code, _, err = output(monkeypatch, capsys, "run", "tour")
    assert code == 1
    assert "the disk is full (/runs/x)" in err


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["trial", "--help"], ["servers", "install", "--help"]]
)
def test_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, out, _ = output(monkeypatch, capsys, *arguments)
    assert code == 0
    assert "Usage" in out


def test_help_loads_no_library_that_only_commands_need() -> None:
    """Each of these takes 0.1 s or more to load."""
    command = [sys.executable, "-P", "-X", "importtime", "-m", "dnsrig", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not {"altair", "numpy", "polars", "pydantic", "scipy"} & loaded


LISTED = {
    "experiments": "many-zones",
    "procedures": "zone-load",
    "datasets": "tiny-zones",
    "streams": "capture",
    "servers": "catalog zones of schema 1 9.0",
    "traps": "generator-bottleneck",
    "metrics": "transfer_time_s (s; lower is better)",
    "charts": "slowest-percentile",
    "exports": "parquet",
    "importers": "kxdpgun",
}


@pytest.mark.parametrize("what", [None, *LISTED])
def test_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str | None) -> None:
    """At 80 columns no line is longer, and no name is broken."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = output(monkeypatch, capsys, "list", *([what] if what else []))
    assert code == 0
    for word in [LISTED[what]] if what else LISTED.values():
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_sections_are_apart_and_the_last_column_is_wrapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dnsrig.cli import list as listing

    def experiment(name: str, audience: str, question: str) -> dict[str, str]:
        return {"name": name, "audience": audience, "procedure": "latency", "question": question}

    asked = [
        experiment("one", "server developers", "How?"),
        experiment("twice", "server developers", "How long is it?"),
    ]
    parts = {
        "traps": lambda: [{"name": "loss", "title": "answers were lost"}, {"name": "cold-start", "title": "cold"}],
        "experiments": lambda: [*asked, experiment("three", "registries", "Why?")],
    }
    monkeypatch.setattr(listing, "PARTS", parts)
    monkeypatch.setenv("COLUMNS", "24")
    _, out, _ = output(monkeypatch, capsys, "list")
    assert [line.rstrip() for line in out.splitlines()] == [
        "traps",
        "loss        answers were",
        "            lost",
        "cold-start  cold",
        "",
        "experiments",
        "Server developers",
        "  one    How?",
        "  twice  How long is it?",
        "Registries",
        "  three  Why?",
    ]


def test_each_folder_to_which_a_file_can_be_added_is_listed() -> None:
    from dnsrig.cli.list import PARTS

    assert list(LISTED) == list(PARTS)


@pytest.mark.parametrize(("limit_s", "shown"), [(60, "60 s"), (150, "150 s"), (750, "12.5 min"), (9000, "2.5 h")])
def test_a_limit_is_shown_as_it_was_given(limit_s: float, shown: str) -> None:
    assert _dry_run._time(limit_s) == shown


def test_the_version_names_both_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/reference/commands.md describes it."""
    code, out, _ = output(monkeypatch, capsys, "--version")
    package, engine = out.splitlines()
    assert code == 0
    assert re.fullmatch(r"dnsrig \d+\.\d+\.\d+( \(commit \S+\))?", package)
    assert re.fullmatch(r"dnsrig-engine \d+\.\d+\.\d+ \(profile \w+(, commit \S+)?\)", engine)


def test_an_event_of_a_trial_leaves_at_once() -> None:
    """Whoever waits for it may wait for long, and the trial may be killed."""
    program = "import os; from dnsrig.cli import trial; trial._print_event({'event': 'ready', 'at': 1.5}); os._exit(0)"
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=buffered)
    assert done.stdout == '{"event": "ready", "at": 1.5}\n'
