"""`dnsrig bisect`: which commit changed a metric?"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _options, _repository
from dnsrig.cli._exits import EXIT_INCOMPLETE, EXIT_NO_DIFFERENCE, EXIT_UNDECIDED
from dnsrig.cli.run import clean_machine, need_root, resumable
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.comparison.bisection.record import Candidate, Search
    from dnsrig.comparison.bisection.state import Limits
    from dnsrig.comparison.criterion import Criterion
    from dnsrig.experiment.preparation import Request

STATUS = {"commit": 0, "range": EXIT_INCOMPLETE, "undecided": EXIT_UNDECIDED, "no-difference": EXIT_NO_DIFFERENCE}


def add(app: typer.Typer) -> None:
    app.command("bisect")(command)


def command(
    context: typer.Context,
    experiment: Annotated[
        str | None,
        typer.Argument(help="name of a built-in experiment, or a TOML file", autocompletion=_options.experiments),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(metavar="REF", help="the last good version: a tag, branch or commit, or KIND@git:REF"),
    ] = None,
    bad: Annotated[str | None, typer.Option(metavar="REF", help="the first version known to be bad")] = None,
    bad_if: Annotated[
        str | None,
        typer.Option(
            metavar="CRITERION",
            help="what makes a version bad: METRIC > N % of the good one (or <), or METRIC > N UNIT",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="search these instead of commits: KIND@SOURCE,… from good to bad, or @FILE, one a line"
        ),
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="path in the experiment whose values are the candidates; default: the server under test",
        ),
    ] = None,
    repositories: _repository.Option = None,
    first_parent: Annotated[
        bool,
        typer.Option(
            "--first-parent/--all-commits", help="treat a merge as one change, or search the merged commits, too"
        ),
    ] = True,
    scale: _options.Scale = "quick",
    settings: _options.Settings = None,
    error: Annotated[float, typer.Option(help="largest probability, by the model, that the answer is wrong")] = 0.02,
    max_rounds: Annotated[int, typer.Option(help="largest number of rounds")] = 300,
    seed: _options.Seed = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="continue this search; no other argument is needed")
    ] = None,
    dry_run: _options.DryRun = False,
    runs: _options.Runs = Path("runs"),
    as_json: _options.Json = False,
    quiet: _options.Quiet = False,
) -> None:
    """Find the commit that changed a metric.

    Examples:

        dnsrig bisect catalog-churn --set server=bind@forky --good v9.18.10 \\
            --set changes=catalog --bad v9.18.11 --bad-if 'p99 < 50 %'
        dnsrig bisect tour --set zones=300 --bad-if 'transfer_time > 110 %' \\
            --candidates bind@bullseye,bind@bookworm,bind@forky
        dnsrig bisect --resume runs/tour/20260101T120000Z-abcd

    Each round measures the good end, the bad end and a commit between them, in random order. Rounds are added until a
    fixed rule decides the commit. Then both sides of the answer are measured again. Commits that cannot be built or
    decided are skipped. The answer comes with the probability that it is wrong (docs/explanation/bisect.md). A search
    is a run: `dnsrig report` draws it, and --resume continues it after an interruption.

    Exit status: 0 one commit; 3 undecided; 4 a range of commits that look alike; 5 the ends do not differ as the
    criterion requires; 2 bad input, found before anything is measured if possible.
    """
    from dnsrig.experiment.preparation import Request

    _repository.choose(repositories)
    if resume is not None:
        _check_alone(context, resume)
        _execute(resume, as_json, quiet)
        return
    if experiment is None or bad_if is None:
        raise UsageError(
            "the experiment, or what makes a commit bad, is missing",
            hint="dnsrig bisect EXPERIMENT --good REF --bad REF --bad-if 'p99 > 110 %'",
        )
    request = Request(experiment, scale, settings or [], seed=seed)
    wanted, limits = _criterion(bad_if), _limits(error, max_rounds)
    search = _search(request, _candidates(request, good, bad, candidates, first_parent), wanted, limits, vary)
    if dry_run:
        _show(request, search)
        return
    need_root()
    _execute(_start(request, search, runs, quiet), as_json, quiet)


def _candidates(
    request: Request, good: str | None, bad: str | None, listed: str | None, first_parent: bool
) -> list[Candidate]:
    from dnsrig.experiment.bisection import candidates

    if listed is not None:
        return candidates.narrowed(candidates.listed(listed), good, bad)
    if good is None or bad is None:
        raise UsageError("a search needs both ends", hint="give --good REF and --bad REF, or --candidates LIST")
    return candidates.commits(*candidates.ends(request, good, bad), first_parent=first_parent)


def _check_alone(context: typer.Context, resume: Path) -> None:
    """Refuse arguments that a resumed search would ignore."""
    if _options.given(context).keys() - {"resume", "repositories", "as_json", "quiet"}:
        raise UsageError(
            "--resume takes no other argument: the search already contains them",
            hint=f"dnsrig bisect --resume {resume}",
        )


def _criterion(text: str) -> Criterion:
    from dnsrig.comparison import criterion
    from dnsrig.comparison.compare import metric_name

    wanted = criterion.parse(text)
    return wanted.of(metric_name(wanted.metric, []))


def _limits(error: float, max_rounds: int) -> Limits:
    from pydantic import ValidationError

    from dnsrig.comparison.bisection.state import Limits

    try:
        return Limits.model_validate({"error": error, "rounds": max_rounds})
    except ValidationError as wrong:
        first = wrong.errors()[0]
        option = "--max-rounds" if first["loc"] == ("rounds",) else "--error"
        raise UsageError(f"{option} {first['input']}: {first['msg'].lower()}") from wrong


def _search(request: Request, found: list[Candidate], wanted: Criterion, limits: Limits, axis: str | None) -> Search:
    """The search to start. Raises UsageError for bad input that can be found without measuring."""
    from dnsrig.comparison.bisection.record import Search
    from dnsrig.experiment import preparation, trial_specs
    from dnsrig.experiment.bisection import candidates

    document, path = candidates.base(request, axis, found[-1].value)
    for end in (found[0], found[-1]):
        trial_specs.provisional(request.experiment, candidates.point(document, path, end), preparation.own_cpus())
    return Search(
        candidates=found,
        path=path,
        document=document.model_dump(),
        criterion=wanted,
        limits=limits,
        seed=request.seed if request.seed is not None else secrets.randbelow(1 << 31),
    )


def _show(request: Request, search: Search) -> None:
    from dnsrig.cli import _bisect_output, _dry_run
    from dnsrig.experiment import model, preparation, trial_specs
    from dnsrig.experiment.bisection import candidates
    from dnsrig.report import bisection

    console = _console.out()
    document = model.validate(search.document, "the experiment of the search")
    point = candidates.point(document, search.path, search.candidates[-1])
    spec = trial_specs.provisional(request.experiment, point, preparation.own_cpus())
    console.print(
        visible(f"{document.title}: which of {len(search.candidates) - 1:,} makes {search.criterion}?"), soft_wrap=True
    )
    for line in bisection.listing(search.candidates):
        console.print(line, soft_wrap=True)
    steps, trials = _bisect_output.steps(len(search.candidates)), _bisect_output.trials(len(search.candidates))
    console.print(f"steps: {steps} between the ends; about {trials} trials if the ends differ clearly, otherwise more")
    _dry_run.show_time(console, [spec] * trials)


def _start(request: Request, search: Search, runs: Path, quiet: bool) -> Path:
    from dnsrig.cli._progress import PlainProgress
    from dnsrig.experiment.bisection import hunt

    console = _console.progress(quiet)
    directory = hunt.start(search, Path(request.experiment).stem, request.scale, runs, PlainProgress(console))
    console.print(f"run {directory}")
    return directory


def _execute(directory: Path, as_json: bool, quiet: bool) -> None:
    from dnsrig.cli import _bisect_output
    from dnsrig.cli._progress import watching
    from dnsrig.experiment import runner
    from dnsrig.experiment.bisection.hunt import Hunt
    from dnsrig.report import bisection, write_report

    need_root()
    found = Hunt(directory)
    runner.check_unchanged(found.manifest)
    console = _console.progress(quiet)
    clean_machine(console)
    with resumable(directory), watching(console) as trials:
        answer = found.run(_bisect_output.Watch(trials))
    state, out = found.state(), _console.out()
    if as_json:
        _console.print_document(_bisect_output.as_json(found.search, answer, state))
    else:
        for line in bisection.sentences(found.search, answer):
            out.print(line, soft_wrap=True)
        out.print(_bisect_output.table(found.search, state))
    written = write_report(directory)
    console.print(f"report: {written.path}", soft_wrap=True)
    raise typer.Exit(STATUS[answer.kind])
