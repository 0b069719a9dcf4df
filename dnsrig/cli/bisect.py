"""`dnsrig bisect`: which commit changed a metric?"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _repository
from dnsrig.cli._exits import EXIT_INCOMPLETE, EXIT_NO_DIFFERENCE, EXIT_UNDECIDED
from dnsrig.cli.run import clean_machine, need_root, resumable
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.analysis.bisection.criterion import Criterion
    from dnsrig.analysis.bisection.record import Candidate, Search
    from dnsrig.analysis.bisection.state import Limits
    from dnsrig.experiment.preparation import Request

STATUS = {"commit": 0, "range": EXIT_INCOMPLETE, "undecided": EXIT_UNDECIDED, "no-difference": EXIT_NO_DIFFERENCE}


def add(app: typer.Typer) -> None:
    app.command("bisect")(command)


def command(
    context: typer.Context,
    experiment: Annotated[
        str | None, typer.Argument(help="name of a built-in experiment, or path of a TOML file")
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(metavar="REF", help="the end before the change: a tag, branch or commit, or KIND@git:REF"),
    ] = None,
    bad: Annotated[str | None, typer.Option(metavar="REF", help="the end after it")] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="CRITERION",
            help="METRIC > N % of the good end (or <), or METRIC > N UNIT: what makes the bad end bad",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="instead of commits: KIND@SOURCE,… from good to bad, or @FILE with one a line"
        ),
    ] = None,
    axis: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="candidates are values of this path into the experiment, not of the server under test"
        ),
    ] = None,
    repositories: _repository.Option = None,
    first_parent: Annotated[
        bool,
        typer.Option(
            "--first-parent/--all-commits", help="of a merge only the branch that it was made on: it is one change"
        ),
    ] = True,
    scale: Annotated[str, typer.Option(help="quick, standard or published")] = "quick",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="change the experiment, as `dnsrig run` does; repeatable"),
    ] = None,
    error: Annotated[
        float, typer.Option(help="the largest probability, by the model, that the answer is wrong")
    ] = 0.02,
    max_rounds: Annotated[int, typer.Option(help="so many rounds at most")] = 300,
    seed: Annotated[int | None, typer.Option(help="of the order of trials; recorded either way")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="go on with a search; nothing else is needed")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the candidates, the number of steps and an estimate of the time")
    ] = False,
    runs: Annotated[Path, typer.Option(help="folder of the runs")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="print the answer and its evidence as JSON")] = False,
) -> None:
    """Find the commit that changed METRIC of EXPERIMENT, although every trial is noisy.

    Each round measures both ends and a commit between them, in random order. Repeats are added until the commit is
    decided, by a rule that ends, and both sides of the answer are measured again. Commits that cannot be built or
    decided are stepped around. How sure the answer is stands with it: docs/explanation/bisect.md. The search is a run
    directory, which `dnsrig report` draws; it goes on with --resume after it was interrupted or killed.

    Exit status: 0 one commit, 4 a range of commits that look alike, 3 undecided, 5 the ends do not differ as
    the criterion says. 2 for bad input, before anything is measured where that can be known.

    Examples: dnsrig bisect catalog-churn --set server=bind@forky --set changes=catalog --good v9.18.10 --bad v9.18.11
    --metric 'p99 < 50 %'; dnsrig bisect tour --set zones=300 --candidates bind@bullseye,bind@bookworm,bind@forky
    --metric 'transfer_time > 110 %'; dnsrig bisect --resume runs/tour/20260101T120000Z-abcd
    """
    from dnsrig.experiment.preparation import Request

    _repository.choose(repositories)
    if resume is not None:
        _check_alone(context, resume)
        _execute(resume, as_json)
        return
    if experiment is None or metric is None:
        raise UsageError(
            "which experiment, and what makes a commit bad?",
            hint="dnsrig bisect EXPERIMENT --good REF --bad REF --metric 'p99 > 110 %'",
        )
    request = Request(experiment, scale, settings or [], seed=seed)
    wanted, limits = _criterion(metric), _limits(error, max_rounds)
    search = _search(request, _candidates(request, good, bad, candidates, first_parent), wanted, limits, axis)
    if dry_run:
        _show(request, search)
        return
    need_root()
    _execute(_start(request, search, runs), as_json)


def _candidates(
    request: Request, good: str | None, bad: str | None, listed: str | None, first_parent: bool
) -> list[Candidate]:
    from dnsrig.experiment.bisection import candidates

    if listed is not None:
        return candidates.narrowed(candidates.listed(listed), good, bad)
    if good is None or bad is None:
        raise UsageError("a search needs both ends", hint="--good REF --bad REF, or --candidates LIST")
    from dnsrig.experiment.bisection import history

    return history.commits(*candidates.ends(request, good, bad), first_parent=first_parent)


def _check_alone(context: typer.Context, resume: Path) -> None:
    """Refuse what a search that goes on could not obey."""
    given = {name for name in context.params if (s := context.get_parameter_source(name)) and s.name == "COMMANDLINE"}
    if given - {"resume", "repositories", "as_json"}:
        raise UsageError(
            "--resume takes nothing else: the search says what it looks for", hint=f"dnsrig bisect --resume {resume}"
        )


def _criterion(text: str) -> Criterion:
    from dnsrig.analysis.bisection import criterion
    from dnsrig.analysis.compare import metric_name

    wanted = criterion.parse(text)
    return wanted.of(metric_name(wanted.metric, []))


def _limits(error: float, max_rounds: int) -> Limits:
    from pydantic import ValidationError

    from dnsrig.analysis.bisection.state import Limits

    try:
        return Limits.model_validate({"error": error, "rounds": max_rounds})
    except ValidationError as wrong:
        first = wrong.errors()[0]
        option = "--max-rounds" if first["loc"] == ("rounds",) else "--error"
        raise UsageError(f"{option} {first['input']}: {first['msg'].lower()}") from wrong


def _search(request: Request, found: list[Candidate], wanted: Criterion, limits: Limits, axis: str | None) -> Search:
    """What is looked for. Raises UsageError on bad input that is known without measuring."""
    from dnsrig.analysis.bisection.record import Search
    from dnsrig.experiment import plan, preparation
    from dnsrig.experiment.bisection import candidates

    document, path = candidates.base(request, axis, found[-1].value)
    for end in (found[0], found[-1]):
        plan.provisional(request.experiment, candidates.point(document, path, end), preparation.own_cpus())
    return Search(
        candidates=found,
        path=path,
        document=document.model_dump(),
        criterion=wanted,
        limits=limits,
        seed=request.seed if request.seed is not None else secrets.randbelow(1 << 31),
    )


def _show(request: Request, search: Search) -> None:
    from dnsrig.cli import _bisect_text, _dry_run
    from dnsrig.experiment import model, plan, preparation
    from dnsrig.experiment.bisection import candidates
    from dnsrig.report import bisection

    console = _console.out()
    document = model.validate(search.document, "the experiment of the search")
    point = candidates.point(document, search.path, search.candidates[-1])
    spec = plan.provisional(request.experiment, point, preparation.own_cpus())
    console.print(
        visible(f"{document.title}: which of {len(search.candidates) - 1:,} makes {search.criterion}?"), soft_wrap=True
    )
    for line in bisection.listing(search.candidates):
        console.print(line, soft_wrap=True)
    steps, trials = _bisect_text.steps(len(search.candidates)), _bisect_text.trials(len(search.candidates))
    console.print(
        f"steps: {steps} between the ends; about {trials} trials where the ends differ clearly, more where not"
    )
    _dry_run.show_time(console, [spec] * trials)


def _start(request: Request, search: Search, runs: Path) -> Path:
    from dnsrig.cli._progress import PlainProgress
    from dnsrig.experiment.bisection import hunt

    console = _console.err()
    directory = hunt.start(search, Path(request.experiment).stem, request.scale, runs, PlainProgress(console))
    console.print(f"run {directory}")
    return directory


def _execute(directory: Path, as_json: bool) -> None:
    from dnsrig.cli import _bisect_text
    from dnsrig.cli._bisect_progress import Watch
    from dnsrig.experiment import runner
    from dnsrig.experiment.bisection.hunt import Hunt
    from dnsrig.report import bisection, write_report

    need_root()
    found = Hunt(directory)
    runner.check_unchanged(found.manifest)
    console = _console.err()
    clean_machine(console)
    with resumable(directory), Watch(console) as watch:
        answer = found.run(watch)
    state, out = found.state(), _console.out()
    if as_json:
        print(_bisect_text.as_json(found.search, answer, state), flush=True)
    else:
        for line in bisection.sentences(found.search, answer):
            out.print(line, soft_wrap=True)
        out.print(_bisect_text.table(found.search, state))
    written = write_report(directory)
    console.print(f"report: {written.path}", soft_wrap=True)
    raise typer.Exit(STATUS[answer.kind])
