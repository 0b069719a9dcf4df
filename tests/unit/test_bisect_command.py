"""`dnsrig bisect`, with trials that only pretend: what it runs, what it refuses, and going on after a kill."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from command_line import output
from html_facts import read

from dnsrig import report
from dnsrig.cli import _bisect_output
from dnsrig.cli import bisect as command
from dnsrig.comparison.bisection import record
from dnsrig.comparison.bisection.record import Candidate, Search
from dnsrig.comparison.bisection.search import Answer, Measure
from dnsrig.comparison.bisection.state import State
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import children, runner
from dnsrig.experiment.bisection import candidates, hunt, manifest
from dnsrig.experiment.bisection.hunt import Hunt
from dnsrig.experiment.preparation import Request
from dnsrig.report import bisection
from dnsrig.rundir import Manifest, TrialRecord, TrialSpec, read_json, resume_command, write_json
from dnsrig.runs.run import Run
from dnsrig.servers.builds.errors import BuildFailed

RATES = [*range(1000, 1032)]
CULPRIT = 1020


class Pretended:
    """A trial that only pretends, in the place of `children.Child`: no process is started."""

    fail: frozenset[int] = frozenset()
    """Rates at which trials fail."""

    def __init__(
        self, spec: TrialSpec, target: Path, events: children.Events, lock: int, start: children.Start
    ) -> None:
        self.spec, self.target = spec, target
        events.put((self, None))  # type: ignore[arg-type]

    def result(self) -> tuple[TrialRecord | None, str]:
        rate = int(self.spec.variant.parameters["rate_qps"])
        if rate in self.fail:
            return None, "the moon is full"
        value = random.Random(f"{rate} {self.spec.repeat}").uniform(9, 11) * (2 if rate >= CULPRIT else 1)
        self.target.mkdir(parents=True)
        record = TrialRecord(
            spec=self.spec, outcome="done", phases=[], servers={}, instruments={}, metrics={"p99_ms": value}
        )
        write_json(self.target / "trial.json", record)
        return record, ""

    def end(self) -> None: ...


class Quiet:
    """Notes what it is told; ends the search after so many steps, as a kill would."""

    def __init__(self, steps: int = 1000) -> None:
        self.left = steps
        self.notes: list[str] = []
        self.steps: list[tuple[int, ...]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def step(self, search: Search, state: State, step: object) -> None:
        self.steps.append(step.commits)  # type: ignore[attr-defined]
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def trial_started(self, *_: object) -> None: ...

    def trial_event(self, *_: object) -> None: ...

    def trial_ended(self, *_: object) -> None: ...


def searched(tmp_path: Path, metric: str = "p99 > 110 %", rates: list[int] = RATES) -> Search:
    request = Request("echo-baseline", settings=["transport=udp"], seed=7)
    listed = candidates.listed(",".join(map(str, rates)))
    return command._search(request, listed, command._criterion(metric), command._limits(0.02, 300), "options.rate_qps")


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Starts a search whose trials are pretended."""

    def begun(search: Search, fail: set[int] = frozenset()) -> Path:  # type: ignore[assignment]
        monkeypatch.setattr(Pretended, "fail", frozenset(fail))
        monkeypatch.setattr(runner, "Child", Pretended)
        monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
        return hunt.start(search, "echo-baseline", "quick", tmp_path / "runs", Quiet())

    return begun


def told(directory: Path, answer: Answer) -> list[str]:
    return bisection.sentences(Hunt(directory).search, answer)


def test_it_finds_the_candidate_and_measures_few(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    progress = Quiet()
    answer = Hunt(directory).run(progress)
    assert answer.kind == "commit" and RATES[answer.first] == CULPRIT
    assert told(directory, answer)[0] == str(CULPRIT)
    made = read_json(directory / "manifest.json", Manifest)
    assert len(made.variants) <= 2 + 5
    assert made.axes["rate_qps"] == sorted(made.axes["rate_qps"]), "in the order of the history"
    for number, step in enumerate(progress.steps, start=1):
        of_round = [key for key in made.order if key.repeat == number]
        assert len(of_round) == len(step) and step[0] == 0 and step[-1] == len(RATES) - 1
    assert len({tuple(k.variant for k in made.order if k.repeat == n) for n in range(1, 7)}) > 1, "shuffled"
    table = _bisect_output.table(Hunt(directory).search, Hunt(directory).state())
    assert table.rows[0][1] == "1000" and table.rows[-1][1] == "1031"
    assert _bisect_output.as_json(Hunt(directory).search, answer, Hunt(directory).state())["answer"] == "commit"


@pytest.mark.full
def test_the_report_shows_the_search_as_evidence(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path), fail={RATES[16]})
    answer = Hunt(directory).run(Quiet())
    written = report.write_report(directory)
    assert not [failure for failure in written.run.failures if failure.name in ("which commit", "search-by-round")]
    facts = read(written.path.read_text(encoding="utf-8"))
    assert {"which-commit", "section-search-by-round"} <= set(facts.values("id")) and not facts.unclosed
    told = facts.text.partition("Which commit?")[2].partition("Every variant in figures")[0]
    assert f"{CULPRIT} the first that is like the bad end; " in told and "p99_ms > 110 %" in told
    shown = bisection.searched(written.run)
    assert shown is not None and shown.failed[0][0] == 16 and "Not measured 16 1016: its trials failed" in told
    by_rate = {each.candidate.name: each for each in shown.asked}
    assert set(by_rate) == {"1000", "1031", *(str(RATES[position]) for position in answer.evidence)}
    assert by_rate["1020"].is_like == "bad end" and by_rate["1019"].is_like == "good end"
    of_good, of_bad = by_rate["1020"].of_good, by_rate["1020"].of_bad
    assert 150 < float(of_good.split()[0]) < 260 and 75 < float(of_bad.split()[0]) < 130
    assert by_rate["1020"].wrong.endswith(" %") and by_rate["1000"].is_like == "(good)" and not by_rate["1000"].wrong


def test_progress_says_how_the_ends_differ_so_far(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    both = Measure((0, len(RATES) - 1), "do the ends differ?")
    assert (
        _bisect_output.describe_step(Hunt(directory).search, Hunt(directory).state(), both)
        == "round 1: do the ends differ?"
    )
    with pytest.raises(KeyboardInterrupt):
        Hunt(directory).run(Quiet(steps=2))
    told = _bisect_output.describe_step(Hunt(directory).search, Hunt(directory).state(), both)
    found = re.fullmatch(
        r"round 3: do the ends differ\? So far the bad one is (\d+) % \(\d+\.\.\d+\) of the good one.*", told
    )
    assert found and 150 < int(found[1]) < 260 and told.endswith("; the criterion is p99_ms > 110 %")


def test_the_report_of_a_search_that_goes_on_says_so(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        Hunt(directory).run(Quiet(steps=2))
    shown = bisection.searched(Run.open(directory))
    assert shown is not None and shown.sentences == ["not finished; next: do the ends differ?"]
    assert [each.candidate.name for each in shown.asked] == ["1000", "1031"]


def test_interrupted_after_any_round_it_goes_on_to_the_same_answer(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    whole = begin(searched(tmp_path))
    answer = Hunt(whole).run(Quiet())
    parts = begin(searched(tmp_path))
    for _ in range(100):
        try:
            again = Hunt(parts).run(Quiet(steps=3))
            break
        except KeyboardInterrupt:
            continue
    assert again == answer
    orders = [read_json(each / "manifest.json", Manifest).order for each in (whole, parts)]
    assert orders[0] == orders[1]


def test_a_round_that_was_begun_is_finished_first(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        Hunt(directory).run(Quiet(steps=2))
    before = Hunt(directory).state()
    lost = next(directory.glob("trials/*/02/trial.json"))
    lost.unlink()
    lost.parent.rmdir()
    assert Hunt(directory).state() != before
    with pytest.raises(KeyboardInterrupt):
        Hunt(directory).run(Quiet(steps=0))
    assert Hunt(directory).state() == before


def test_a_candidate_whose_trials_fail_is_stepped_around_and_an_end_is_an_error(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    middle = RATES[16]
    directory = begin(searched(tmp_path), fail={middle})
    progress = Quiet()
    answer = Hunt(directory).run(progress)
    assert answer.kind == "commit" and RATES[answer.first] == CULPRIT
    assert Hunt(directory).search.failed == {16: "its trials failed 3 times by a fault of dnsrig or the machine"}
    assert any("1016 is stepped around" in note for note in progress.notes)
    with pytest.raises(DnsrigError, match="an end of the search"):
        Hunt(begin(searched(tmp_path), fail={RATES[-1]})).run(Quiet())


def test_what_goes_on_with_a_search_is_bisect(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    assert resume_command(directory) == f"dnsrig bisect --resume {directory}"
    assert resume_command(tmp_path) == f"dnsrig run --resume {tmp_path}"


def test_a_candidate_that_cannot_be_built_is_stepped_around(
    tmp_path: Path, begin, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    build = manifest.with_candidate

    def failing(made: Manifest, search: Search, position: int, note: object) -> Manifest:
        if position in (16, CULPRIT - RATES[0]):
            raise BuildFailed("it cannot be built: no header\n  the log", log=tmp_path / "log")
        return build(made, search, position, note)  # type: ignore[arg-type]

    monkeypatch.setattr(manifest, "with_candidate", failing)
    progress = Quiet()
    answer = Hunt(directory).run(progress)
    assert (answer.kind, RATES[answer.first], RATES[answer.last]) == ("range", CULPRIT, CULPRIT + 1)
    assert Hunt(directory).search.failed[16] == "it cannot be built: no header"
    assert "1 cannot be measured" in told(directory, answer)[0]
    assert told(directory, answer)[1].split() == [str(answer.first), str(CULPRIT)]
    assert _bisect_output.as_json(Hunt(directory).search, answer, Hunt(directory).state())["not_measurable"]


def test_a_metric_that_the_experiment_lacks_is_bad_input(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path, "transfer_time > 110 %"))
    with pytest.raises(UsageError, match="have no transfer_time_s") as error:
        Hunt(directory).run(Quiet())
    assert "p99_ms" in error.value.hint


ARGUMENTS = [
    "bisect",
    "echo-baseline",
    "--set",
    "transport=udp",
    "--vary",
    "options.rate_qps",
    "--candidates",
    "1000,1001,1002",
]


def test_a_dry_run_shows_candidates_steps_and_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    many = ",".join(map(str, RATES))
    code, out, _ = output(monkeypatch, capsys, *ARGUMENTS[:-1], many, "--bad-if", "p99 > 110 %", "--dry-run")
    out = " ".join(out.split())
    assert code == 0
    assert "which of 31 makes p99_ms > 110 %?" in out and "… 20 more" in out
    assert "steps: 5 between the ends; about 54 trials" in out and "time: about" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ARGUMENTS, "--bad-if", "p99 110"], "is no criterion"),
        ([*ARGUMENTS, "--bad-if", "p98 > 110 %"], "there is no metric 'p98'"),
        ([*ARGUMENTS, "--bad-if", "p99 > 3 qps"], "is no unit"),
        ([*ARGUMENTS, "--bad-if", "p99 > 110 %", "--error", "0.7"], "--error"),
        ([*ARGUMENTS, "--bad-if", "p99 > 110 %", "--max-rounds", "1"], "--max-rounds"),
        ([*ARGUMENTS, "--bad-if", "p99 > 110 %", "--good", "999"], "999 is not among the candidates"),
        ([*ARGUMENTS, "--bad-if", "p99 > 110 %", "--good", "1002", "--bad", "1000"], "does not come before"),
        ([*ARGUMENTS[:-1], "1000", "--bad-if", "p99 > 110 %"], "at least two candidates"),
        ([*ARGUMENTS[:-1], "1000,1001,1000", "--bad-if", "p99 > 110 %"], "twice among"),
        ([*ARGUMENTS[:-1], "@nowhere", "--bad-if", "p99 > 110 %"], "cannot be read"),
        ([*ARGUMENTS[:-1], "fast,faster", "--bad-if", "p99 > 110 %"], "rate_qps"),
        (
            ["bisect", "tour", "--candidates", "nsd@forky,nsd@trixie", "--bad-if", "p99 > 1 s"],
            "takes one (zones: 100, 30)",
        ),
        (
            ["bisect", "tour", "--candidates", "unbound@a,unbound@b", "--bad-if", "p99 > 1 s"],
            "no variant of tour has unbound",
        ),
        (["bisect", "tour", "--bad-if", "p99 > 110 %", "--good", "v1"], "needs both ends"),
        (["bisect", "tour", "--good", "v1", "--bad", "v2"], "what makes a commit bad"),
        (["bisect", "tuor", "--bad-if", "p99 > 110 %", "--candidates", "a,b"], "no experiment 'tuor'"),
        (["bisect", "tour", "--resume", "runs/x"], "--resume takes no other argument"),
        (["bisect", "--resume", "runs/x", "--error", "0.1"], "--resume takes no other argument"),
        ([*ARGUMENTS, "--bad-if", "p99 > 110 %", "--scale", "huge"], "there is no scale"),
    ],
)
def test_bad_input_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = output(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "") and said in err


def test_candidates_from_a_file_and_narrowed(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# releases\nbind@a\n\nbind@b  # the second\nbind@c\n")
    found = candidates.listed(f"@{tmp_path}/list")
    assert [each.name for each in found] == ["bind@a", "bind@b", "bind@c"]
    assert [each.name for each in candidates.narrowed(found, "bind@b", None)] == ["bind@b", "bind@c"]


def test_a_state_of_a_newer_dnsrig_is_refused(tmp_path: Path, begin) -> None:  # type: ignore[no-untyped-def]
    directory = begin(searched(tmp_path))
    stored = json.loads(record.path(directory).read_text())
    record.path(directory).write_text(json.dumps({**stored, "schema_version": 999}))
    with pytest.raises(DnsrigError, match="newer dnsrig"):
        Hunt(directory)


@pytest.mark.parametrize(
    ("count", "refused"),
    [
        (0, "at least two candidates"),
        (1, "at least two candidates"),
        (2, ""),
        (candidates.MOST_CANDIDATES, ""),
        (candidates.MOST_CANDIDATES + 1, "there are 100,001 candidates, more than 100,000"),
    ],
)
def test_a_search_has_two_candidates_or_more_up_to_a_limit(count: int, refused: str) -> None:
    found = [Candidate(value=1, name="1")] * count
    if refused:
        with pytest.raises(UsageError, match=refused):
            candidates.check(found)
    else:
        assert candidates.check(found) is found


@pytest.mark.parametrize(
    ("good", "bad", "names"),
    [
        (None, None, "abcd"),
        ("a", "d", "abcd"),
        ("b", None, "bcd"),
        (None, "c", "abc"),
        ("b", "c", "bc"),
        ("b", "b", ""),
        ("c", "b", ""),
        ("d", None, ""),
        (None, "a", ""),
    ],
)
def test_a_search_goes_from_the_good_end_to_the_bad_one(good: str | None, bad: str | None, names: str) -> None:
    found = candidates.listed("a,b,c,d")
    if names:
        assert [each.name for each in candidates.narrowed(found, good, bad)] == list(names)
    else:
        with pytest.raises(UsageError, match="does not come before"):
            candidates.narrowed(found, good, bad)
