"""Repositories that servers are built from: commits, ranges, files; and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import repository_data as data
from repository_data import Tiny, commit, git, releases, tiny

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.servers import sources
from dnsrig.servers.builds import build, reference, repository
from dnsrig.servers.builds.repository import Repository
from dnsrig.servers.sources import git as source

TINY = Tiny()


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of mirrors with Tiny's repository in it."""
    releases(tmp_path / "mirrors/tiny", "1.9.0", "1.10.0", "2.0.0")
    monkeypatch.setenv(repository.FOLDER_VARIABLE, str(tmp_path / "mirrors"))
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(repository, "_chosen", {})
    return tmp_path / "mirrors/tiny"


def test_a_ref_is_a_full_hash(origin: Path) -> None:
    whole = git(origin, "rev-parse", "v1.10.0")
    git(origin, "branch", "fix", "v1.10.0")
    git(origin, "tag", "--annotate", "--message=x", "annotated", "v1.10.0")
    assert {source.commit(TINY, ref) for ref in ("v1.10.0", "fix", "annotated", whole, whole[:12])} == {whole}


@pytest.mark.parametrize("ref", ["v3.0.0", "0123456789ab", "v2.0.0^{tree}"])
def test_a_ref_that_does_not_exist(origin: Path, ref: str) -> None:
    with pytest.raises(UsageError, match="has no commit") as caught:
        source.commit(TINY, ref)
    assert "v2.0.0" in caught.value.hint and "--repository tiny=" in caught.value.hint
    assert Repository(origin).resolve("--help") is None


def test_releases_by_version(origin: Path) -> None:
    git(origin, "tag", "v2.0.0-rc1")
    assert source.releases(TINY) == ["v1.9.0", "v1.10.0", "v2.0.0"]


def test_commits_between_two_each_after_its_parents(origin: Path) -> None:
    git(origin, "checkout", "--quiet", "-b", "side", "v1.10.0")
    side = commit(origin, {"side": "x"}, message="On the side")
    git(origin, "checkout", "--quiet", "main")
    git(origin, "merge", "--quiet", "--no-ff", "--message=Merge", "side")
    found = source.commits(TINY, "v1.9.0", "main")
    known = {source.commit(TINY, "v1.9.0")}
    for one in found:
        assert set(one.parents) <= known, one
        known.add(one.hash)
    assert found[-1].subject == "Merge" and side in known and len(found) == 6
    mainline = Repository(origin).between("v1.9.0", "main", first_parent=True)
    assert side not in {one.hash for one in mainline} and len(mainline) == 5
    assert {one.time_s for one in found} == {1670846400}


def names(text: str) -> list[str]:
    return source.expand(TINY, text)


def test_a_range_of_releases(origin: Path) -> None:
    assert names("git:v1.9.0..v2.0.0") == ["git:v1.9.0", "git:v1.10.0", "git:v2.0.0"]
    assert names("git:v1.10.0..v2.0.0 --x") == ["git:v1.10.0 --x", "git:v2.0.0 --x"]
    assert names("git:v1.9.0") == ["git:v1.9.0"]


def test_a_range_of_releases_goes_over_branches(origin: Path) -> None:
    git(origin, "checkout", "--quiet", "-b", "old", "v1.9.0")
    commit(origin, tiny("1.9.1"), tag="v1.9.1")
    assert names("git:v1.9.1..v2.0.0") == ["git:v1.9.1", "git:v1.10.0", "git:v2.0.0"]
    with pytest.raises(UsageError, match=r"v1\.9\.1 is not an ancestor of v2\.0\.0") as caught:
        names("git:v1.9.1..v2.0.0 steps=commits")
    assert "steps=tags" in caught.value.hint


def test_a_range_of_commits(origin: Path) -> None:
    found = names("git:v1.9.0..v2.0.0 steps=commits")
    assert len(found) == 5 and (found[0], found[-1]) == ("git:v1.9.0", "git:v2.0.0")
    assert found[2] == f"git:{source.commit(TINY, 'v1.10.0')[: reference.SHORT]}"
    assert names("git:v1.9.0..v2.0.0 steps=3") == [found[0], found[2], found[-1]]
    assert names("git:v1.9.0..main") == [*found[:-1], "git:main"], "an end that is no release"


def test_steps_are_spread_evenly_with_both_ends() -> None:
    refs = [str(number) for number in range(100)]
    assert reference.spread(refs, 4) == ["0", "33", "66", "99"]
    assert reference.spread(refs, 1000) == refs
    for count in range(2, 100):
        found = [int(ref) for ref in reference.spread(refs, count)]
        gaps = {second - first for first, second in itertools.pairwise(found)}
        assert len(found) == count and max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("git:v2.0.0..v1.9.0", "contains no releases"),
        ("git:v2.0.0..v1.9.0 steps=2", "is not an ancestor"),
        ("git:v1.9.0..main steps=tags", "from a release to a release"),
        ("git:v1.9.0..v2.0.0 steps=1", "a range has two ends"),
        ("git:v1.9.0..v7.0.0", "has no commit 'v7.0.0'"),
    ],
)
def test_a_range_that_is_none(origin: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        names(text)
    assert caught.value.hint


def test_a_range_with_too_many_builds(origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "MOST_STEPS", 2)
    with pytest.raises(UsageError, match="would be 3 builds, more than 2"):
        names("git:v1.9.0..v2.0.0")


def test_a_range_is_not_one_server(origin: Path) -> None:
    for act in (source.find, source.install):
        with pytest.raises(UsageError, match="is a range of builds, not one"):
            act(TINY, "git:v1.9.0..v2.0.0")


def test_another_repository_by_name(origin: Path, tmp_path: Path) -> None:
    commit(tmp_path / "fork", tiny("9.9.9"), tag="v9.9.9")
    repository.choose("tiny", str(tmp_path / "fork"))
    assert source.releases(TINY) == ["v9.9.9"]
    repository.choose("tiny", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="there is no repository"):
        source.releases(TINY)
    (tmp_path / "empty").mkdir()
    repository.choose("tiny", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match="is not a git repository"):
        source.commit(TINY, "v1.9.0")


def test_a_repository_of_something_else(origin: Path, tmp_path: Path) -> None:
    commit(tmp_path / "other", {"README": "of something else"}, tag="v1.0.0")
    repository.choose("tiny", str(tmp_path / "other"))
    with pytest.raises(UsageError, match="is not Tiny, or too old to be built: it has no tiny") as caught:
        source.find(TINY, "git:v1.0.0")
    assert "--repository tiny=" in caught.value.hint


def test_a_url_is_cloned_once_and_fetched_for_what_is_new(origin: Path, tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    releases(upstream, "5.0.0")
    repository.choose("tiny", upstream.as_uri())
    assert source.find(TINY, "git:v5.0.0") is None, "nothing is fetched for a look"
    first = source.commit(TINY, "v5.0.0")
    releases(upstream, "5.0.1")
    assert source.commit(TINY, "v5.0.1") != first
    commit(upstream, {"more": "x"})
    assert source.commit(TINY, "main") == git(upstream, "rev-parse", "main"), "a branch moves"
    upstream.rename(tmp_path / "gone")
    assert source.commit(TINY, "v5.0.0") == first, "a release does not"
    with pytest.raises(DnsrigError, match="git fetch") as caught:
        source.commit(TINY, "v5.0.2")
    assert repository.FOLDER_VARIABLE in caught.value.hint
    assert not list((tmp_path / "cache/repositories").glob(".unfinished*"))


def test_files_are_checked_out_whatever_the_repository_exports(origin: Path, tmp_path: Path) -> None:
    commit(origin, {".gitattributes": "tiny.c.in export-ignore\n", "a/b/c": "deep"})
    here = data.tree(origin)
    here.repository.check_out(here.commit, tmp_path / "out", left_out=("tests", "none"))
    assert (tmp_path / "out/a/b/c").read_text() == "deep" and (tmp_path / "out/tiny.c.in").exists()
    assert not (tmp_path / "out/tests").exists() and not (tmp_path / "out.index").exists()
    assert git(origin, "status", "--porcelain") == "", "the user's own files stay as they are"


def test_a_submodule_is_found_among_the_mirrors(origin: Path, tmp_path: Path) -> None:
    wanted = commit(tmp_path / "mirrors/library", {"library.h": "x"})
    git(origin, "submodule", "--quiet", "add", (tmp_path / "mirrors/library").as_uri(), "library")
    git(origin, "config", "--file=.gitmodules", "submodule.library.url", "https://far.example/x/library.git")
    commit(origin, {}, message="With a library")
    here = data.tree(origin)
    found = here.repository.submodule(here.commit, "library")
    assert found == ("https://far.example/x/library.git", wanted)
    assert here.repository.submodule(here.commit, "tiny.c.in") is None
    build._submodule(*found, tmp_path / "out/library")
    assert (tmp_path / "out/library/library.h").read_text() == "x"


def test_names_of_builds_are_names_of_servers(origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "driver", lambda kind: TINY)
    assert sources.with_options("tiny@git:v1.9.0", "--x", symbols=True) == "tiny@git:v1.9.0 debug=symbols --x"
    assert sources.with_options("tiny@git:v1.9.0", "", symbols=False) == "tiny@git:v1.9.0"
    assert sources.with_options("tiny@forky", "", symbols=True) == "tiny@forky", "nothing is built"
    assert sources.expand("tiny@git:v1.10.0..v2.0.0") == ["tiny@git:v1.10.0", "tiny@git:v2.0.0"]
    assert sources.is_range("tiny@git:a..b") and not sources.is_range("tiny@git:a") and not sources.is_range(3)
    with pytest.raises(UsageError, match="tiny@forky is not built by dnsrig, so it has no build options"):
        sources.with_options("tiny@forky", "--x", symbols=False)
