"""``memorydojo judge``: label saved runs with another judge, and compare judges."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memorydojo._display import counted, plain, verb
from memorydojo.cli._console import print_view
from memorydojo.view import Column, View

if TYPE_CHECKING:
    from memorydojo.judging import JudgeReport


def judge(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", exists=True, help="Directories of saved runs.")],
    judge: Annotated[
        str | None, typer.Option(help="A model of --models, or overlap for the offline judge (the default).")
    ] = None,
    models: Annotated[Path | None, typer.Option(help="A TOML file that declares models; see docs/models.md.")] = None,
    agree: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Judge nothing; compare two sets of labels: confusion table and kappa."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Most questions under way at once.")] = 8,
    again: Annotated[
        bool, typer.Option("--again", help="Label anew what has this judge's labels; judgements are kept.")
    ] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again what there was no usable answer about.")
    ] = False,
    replay: Annotated[str, typer.Option(help="Recorded answers: off, prefer or only.")] = "off",
    answers: Annotated[
        Path | None, typer.Option(help="The file of recorded answers; answers.sqlite in PATH if not given.")
    ] = None,
    judgements: Annotated[
        Path | None, typer.Option(help="The file of judgements; judgements.sqlite in PATH if not given.")
    ] = None,
) -> None:
    """Label saved runs with a judge, beside the labels that they have; no fact is touched.

    Every text is judged once, and an interrupted judging goes on where it was left.

    Example: memorydojo judge runs/demo --judge gpt-mini --models models.toml
    """
    if agree is not None:
        if judge is not None:
            raise typer.BadParameter("--agree compares labels that are there, and --judge makes some; use one of them")
        _agree(paths, agree)
        return
    from memorydojo.cli.run import replay_mode
    from memorydojo.judging import judge_runs
    from memorydojo.judging.labels import OFFLINE_JUDGE
    from memorydojo.models.config import Models

    name = judge or OFFLINE_JUDGE
    declared = Models.from_toml(models) if models is not None else None
    for path in paths:
        report = judge_runs(
            path,
            name,
            models=declared,
            replay=replay_mode(replay),
            answers=answers,
            judgements=judgements,
            workers=workers,
            again=again,
            retry_errors=retry_errors,
            progress=_progress,
        )
        typer.echo("\n".join(summary(report, path)))
    typer.echo(f"next: memorydojo metrics {' '.join(plain(str(path)) for path in paths)} --labels {plain(name)}")


def _progress(done: int, of: int, run: str) -> None:
    typer.echo(f"  {done:>3}/{of}  {plain(run)}", err=True)


def summary(report: "JudgeReport", path: Path) -> list[str]:
    """What a judging took, a sentence a line."""
    before = f" ({report.kept} had {verb(report.runs, 'it', 'them')} before)" if report.kept else ""
    lines = [
        f"{plain(str(path))}: {counted(report.runs, 'run')} {verb(report.runs, 'has', 'have')} labels of "
        f"{report.labels}{before}"
    ]
    found = report.judging
    if found is None:
        return lines
    lines.append(
        f"{counted(found.texts, 'text')}, each once in its run: {found.exact} exact by code, "
        f"{found.known} known from other runs, {found.asked} asked of the model"
    )
    if report.saved is not None:
        calls = sum(used.calls + used.errors for used in found.usage)
        lines.append(
            f"{counted(calls, 'call')} in all; judging everything in every session would have taken {found.mentions}: "
            f"{100 * report.saved:.1f} % saved"
        )
    if found.errors:
        lines.append(
            f"{counted(found.errors, 'text')} without a usable answer {verb(found.errors, 'has', 'have')} the label "
            f"error and {verb(found.errors, 'counts', 'count')} as 0:"
        )
        ranked = sorted(found.problems.items(), key=lambda item: -item[1])
        lines.extend(f"  {counted(count, 'time')}: {plain(problem, 300)}" for problem, count in ranked[:5])
        lines.append("  ask for them again with --retry-errors")
    return lines


def _agree(paths: Sequence[Path], names: tuple[str, str]) -> None:
    from memorydojo.judging import agreement
    from memorydojo.runs import load_runs

    runs = [run for path in paths for run in load_runs(path)]
    found = agreement(runs, *names)
    rows = []
    for row in found.summary.to_dict("records"):
        agreed, kappa = _with_interval(row, "agreed", "{:.2f}", 100), _with_interval(row, "kappa", "{:.3f}")
        rows.append((row["level"], row["n"], agreed, kappa, row["n_error"]))
    heads = ("n", "agreed %", "kappa", "without a usable answer")
    first, second = found.judges
    print_view(
        View(
            f"Agreement of {first} and {second}",
            ["level", *(Column(name, number=True) for name in heads)],
            rows,
            notes=["In brackets: 95 % intervals over trajectories; none with fewer than two of them."],
            simulated=any(run.header.simulated for run in runs),
        )
    )
    confusion = found.confusion
    print_view(
        View(
            f"Different texts: {first} down, {second} across",
            ["label", *(Column(str(name), number=True) for name in confusion.columns)],
            [(str(label), *counts) for label, counts in confusion.iterrows()],
        )
    )


def _with_interval(row: Mapping[Any, Any], name: str, form: str, factor: float = 1) -> str:
    """A measure with its interval; a dash where it is undefined."""
    value, low, high = (factor * row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if math.isnan(value):
        return "-"
    shown = form.format(value)
    return shown if math.isnan(low) else f"{shown} [{form.format(low)}, {form.format(high)}]"
