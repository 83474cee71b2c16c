"""What saved runs cost: calls, tokens, seconds, retries and errors, and their price if prices are given."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from memorydojo._base import Frozen, problems
from memorydojo._display import plain, valid
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.models.usage import Usage, Waiting

if TYPE_CHECKING:
    import pandas as pd

    from memorydojo.runs import Run
    from memorydojo.runs.model import SharedPrefix

KEYS = ("run_id", "session", "memory", "role", "model", "simulated")
COUNTS = tuple(name for model in (Usage, Waiting) for name in model.model_fields if name not in KEYS)


class Price(Frozen):
    """What a model costs, in any one currency.

    Attributes:
        input: A million input tokens that were not cached.
        cached: A million cached input tokens; as much as `input` if it is not given.
        output: A million output tokens, reasoning included.
    """

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(default=0.0, ge=0)


def read_prices(path: Path) -> dict[str, Price]:
    """Reads a file with a table ``[<model>]`` for each model: ``input``, ``cached``, ``output``.

    Raises:
        InvalidInputError: It cannot be read, or a field is wrong.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInputError(
            f"there is no file {plain(str(path))}; prices are written as docs/models.md says, or left out"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"cannot read the prices in {plain(str(path))}: {error}") from error
    prices = {}
    for name, table in data.items():
        try:
            prices[name] = Price.model_validate(table)
        except ValidationError as error:
            raise InvalidInputError(
                f"the prices in {plain(str(path))} are wrong: {plain(name)}: {problems(error, Price, table)}"
            ) from None
    return prices


def usage_table(runs: "Iterable[Run]") -> "pd.DataFrame":
    """One row for each run, session, role and model that was asked something: `KEYS` and `COUNTS`.

    Session 0 is what was asked outside of the sessions: before the first one, the writing of a history included, for
    the held-out question after the last, and by judges for the labels that are saved. A judge's text counts in the run
    that it was first asked for. So do sessions that were run once for several runs: they count in the first of the
    given runs, and a sum counts nothing twice.
    """
    import pandas as pd

    rows = []
    counted: dict[tuple[str, int | str], str] = {}
    for run in runs:
        header = run.header
        parts = [(0, header.usage, header.waiting), *((0, told.usage, told.waiting) for told in run.history)]
        parts += [(s.session, s.usage, s.waiting) for s in run.sessions]
        if header.shared is not None:
            parts = _own(run.id, parts, header.shared, counted)
        if (question := run.question) is not None:
            parts.append((0, question.usage, question.waiting))
        judgings = (run.judging(judge) for judge in run.judges())
        parts += [(0, judging.usage, judging.waiting) for judging in judgings if judging is not None]
        for number, usage, waiting in parts:
            waited = {(w.role, w.model): w for w in waiting}
            for used in usage:
                wait = waited.get((used.role, used.model)) or Waiting(role=used.role, model=used.model)
                row = {
                    "run_id": run.id,
                    "session": number,
                    "memory": header.memory.name,
                    "simulated": header.simulated,
                    **used.model_dump(),
                    **wait.model_dump(),
                }
                # Lone surrogates in names are no text for pandas where pyarrow backs it.
                rows.append({name: valid(value) if isinstance(value, str) else value for name, value in row.items()})
    return pd.DataFrame(rows, columns=[*KEYS, *COUNTS])


_Part = tuple[int, tuple[Usage, ...], tuple[Waiting, ...]]


def _own(
    run: str, parts: list[_Part], shared: "SharedPrefix", counted: dict[tuple[str, int | str], str]
) -> list[_Part]:
    """The parts of a run that count with it: its own, and shared ones that have not been counted with another run.

    Args:
        run: The run's id.
        parts: What it asked, by session.
        shared: What it shares.
        counted: The runs that shared sessions count with, by execution and session; more are noted in it.
    """
    openings = [
        (0, one.usage, one.waiting) for one in shared.segments if counted.setdefault((one.token, ""), run) == run
    ]
    executions = [(shared.token_of(part[0]), part) for part in parts]
    return [
        *openings,
        *(p for token, p in executions if token is None or counted.setdefault((token, p[0]), run) == run),
        (0, shared.usage, shared.waiting),
    ]


def summarize_cost(
    table: "pd.DataFrame", *, by: Sequence[str] | None = None, prices: Mapping[str, Price] | None = None
) -> "pd.DataFrame":
    """Sums of a usage table, one row a group.

    Args:
        table: From `usage_table`.
        by: Columns of `KEYS` to group by; memory, role and model if it is not given.
        prices: Prices by model. The column ``price`` is then added; it is NaN for a group with a model that has none,
            or with calls whose tokens nobody counted. Replayed calls count as if they had been made.

    Raises:
        UnknownNameError: A column to group by does not exist.
    """
    keys = list(by or ("memory", "role", "model", "simulated"))
    for name in keys:
        if name not in KEYS:
            raise UnknownNameError("column", name, KEYS)
    shown = table.copy()
    counts = list(COUNTS)
    if prices is not None:
        shown["price"] = [_price(row, prices) for row in shown.to_dict("records")]
        counts.append("price")
    # A sum that skipped what has no price would read as the whole price.
    groups = shown.groupby(keys, dropna=False, sort=True)
    sums = groups[counts].sum()
    if prices is not None:
        sums.loc[groups["price"].count() < groups.size(), "price"] = float("nan")
    return sums.reset_index()


def _price(row: Mapping[Any, Any], prices: Mapping[str, Price]) -> float:
    price = prices.get(str(row["model"]))
    if price is None or row["unmetered"]:
        return float("nan")
    cached = price.input if price.cached is None else price.cached
    fresh = row["input_tokens"] - row["cached_tokens"]
    total: float = (fresh * price.input + row["cached_tokens"] * cached + row["output_tokens"] * price.output) / 1e6
    return total
