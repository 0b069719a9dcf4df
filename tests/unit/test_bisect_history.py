"""`dnsrig bisect` over the commits of a repository: which they are, and what is no history."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import output
from repository_data import commit, git, releases

from dnsrig.errors import UsageError
from dnsrig.experiment.bisection import candidates
from dnsrig.servers.builds import repository


@pytest.fixture(autouse=True)
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with BIND's name and tags: between 9.18.1 and 9.18.2 a branch of two commits is merged."""
    folder = tmp_path / "mirrors/bind9"
    releases(folder, "9.18.0", "9.18.1")
    git(folder, "checkout", "--quiet", "-b", "feature")
    commit(folder, {"feature": "half"}, message="Half of [bold]it[/bold]")
    commit(folder, {"feature": "whole"}, message="The other half")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "-m", "Merge the feature", "feature")
    commit(folder, {"notes": "last"}, tag="v9.18.2", message="Release 9.18.2")
    git(folder, "branch", "--quiet", "bind-9.16", "v9.18.0")
    git(folder, "checkout", "--quiet", "bind-9.16")
    commit(folder, {"notes": "old"}, tag="v9.16.50", message="Release 9.16.50")
    git(folder, "checkout", "--quiet", "main")
    monkeypatch.setenv(repository.FOLDER_VARIABLE, str(tmp_path / "mirrors"))
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(repository, "_chosen", {})
    return folder


def test_a_merge_is_one_change_or_all_of_its_commits(mirror: Path) -> None:
    found = candidates.commits("bind", "v9.18.1", "v9.18.2", first_parent=True)
    assert [each.subject for each in found] == ["Release 9.18.1", "Merge the feature", "Release 9.18.2"]
    assert [found[0].name, found[-1].name] == ["v9.18.1", "v9.18.2"]
    assert found[1].value == f"bind@git:{git(mirror, 'rev-parse', 'v9.18.2~1')}"
    assert str(found[1].value).startswith(f"bind@git:{found[1].name}")
    every = candidates.commits("bind", "v9.18.1", "v9.18.2", first_parent=False)
    assert [each.subject for each in every[1:3]] == ["Half of [bold]it[/bold]", "The other half"]
    assert len(every) == 5


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("v9.18.7", "v9.18.2", "no commit 'v9.18.7'"),
        ("v9.18.2", "v9.18.2", "are one commit"),
        ("v9.18.2", "v9.18.1", "v9.18.2 is not an ancestor of v9.18.1"),
        ("v9.16.50", "v9.18.2", "not an ancestor"),
    ],
)
def test_what_is_no_history_is_refused(good: str, bad: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        candidates.commits("bind", good, bad, first_parent=True)
    hints = {("v9.18.2", "v9.18.1"): "swap them", ("v9.16.50", "v9.18.2"): "git merge-base v9.16.50 v9.18.2"}
    assert hints.get((good, bad), "") in error.value.hint


TOUR = ("bisect", "tour", "--set", "zones=3", "--bad-if", "transfer_time > 110 %", "--dry-run")


def test_a_dry_run_lists_commits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = output(
        monkeypatch, capsys, *TOUR, "--good", "bind@git:v9.18.0", "--bad", "v9.18.2", "--all-commits"
    )
    assert (code, err) == (0, "")
    assert "Half of [bold]it[/bold]" in out and "v9.18.2  Release 9.18.2" in out
    code, out, _ = output(
        monkeypatch, capsys, *TOUR, "--set", "server=bind@forky", "--good", "v9.18.0", "--bad", "v9.18.2"
    )
    assert code == 0 and "Half of" not in out


def test_a_baseline_that_is_not_measured_means_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    churn = ("bisect", "catalog-churn", "--set", "changes=catalog", *TOUR[4:])
    ends = ("--good", "bind@git:v9.18.0", "--bad", "v9.18.2")
    code, _, err = output(monkeypatch, capsys, *churn, *ends)
    assert code == 2 and "takes one (server: bind@bullseye, bind@forky)" in err and "--set server=bind@forky" in err
    assert output(monkeypatch, capsys, *churn, *ends, "--set", "server=bind@forky")[0] == 0


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (("--good", "v9.18.0", "--bad", "v9.18.2"), "several servers under test"),
        (("--good", "bind@git:v9.18.0", "--bad", "nsd@git:v1"), "belong to different servers"),
        (("--good", "bind@git:v9.18.0", "--bad", "v9.99"), "no commit 'v9.99'"),
        (("--good", "bind@git:v9.16.50", "--bad", "v9.18.2"), "not an ancestor"),
        (("--good", "valkey@git:1", "--bad", "2"), "no recipe"),
    ],
)
def test_bad_ends_are_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ends: tuple[str, ...], said: str
) -> None:
    code, out, err = output(monkeypatch, capsys, *TOUR, *ends)
    assert (code, out) == (2, "") and said in err
