"""What the adapters cost: write and retrieve through them against the same memory systems called directly.

The endpoint is a process of its own; it answers chat requests after 100 ms and requests for embeddings after 20 ms, by
the adapters' simulated models and the local embedder. The sessions are those of a shipped trajectory, as the simulated
agent works through them. Each round starts with an empty memory; for each session it retrieves with the session's
request, then writes the session, as a run does. Opening and closing are not counted. Rounds of the two sides alternate;
of each call the best round counts, because other work on the machine only ever adds time.

Direct is the system's own package as its makers document it; ``_direct.py`` says where it departs from that. Ours
is the adapter as a run opens it, with its models behind the gateway, and with its default settings but two of
Graphiti's: the reranker that asks for logprobs, as Graphiti's own for OpenAI does (the adapter's default asks another
question, for models that give none), and 20 requests at a time, Graphiti's own default (the adapter's is 10).

Letta is measured only if it is named (``--systems letta``): it needs its server, which ``memorydojo letta set-up`` sets
up. A server is started for the benchmark; both sides call it.
"""

import argparse
import contextlib
import json
import logging
import math
import os
import re
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from _direct import CONCURRENCY, DIRECT, EMBEDDING_MODEL  # type: ignore[import-not-found]
from _upstream import endpoint  # type: ignore[import-not-found]

import memorydojo as md
from memorydojo.adapter import load_adapter
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import ModelError
from memorydojo.models.config import Backend, Model, Models
from memorydojo.models.connection import Connection
from memorydojo.models.gateway import Gateway
from memorydojo.models.simulation import simulated_answer
from memorydojo.models.through import GatewayModels
from memorydojo.record import SessionRecord
from memorydojo.simulator.embedder import MiniLMEmbedder

CHAT_SECONDS, EMBEDDING_SECONDS = 0.1, 0.02
#: Where an adapter's default is not the setting that the makers' own client works with.
SETTINGS: dict[str, dict[str, Any]] = {"graphiti": {"reranker": "logprobs", "concurrency": CONCURRENCY}}


class Recorder(FullContextAdapter):
    """Keeps the sessions that a run writes."""

    records: list[SessionRecord] = []

    def write(self, record: SessionRecord) -> None:
        """Keeps and writes one."""
        super().write(record)
        self.records.append(record)


@dataclass(frozen=True)
class Round:
    """One round on one side.

    Attributes:
        retrieve: Seconds of each retrieval.
        write: Seconds of each write.
        stored: How many entries there are at the end.
        retrieved: How many were found, all retrievals together.
    """

    retrieve: tuple[float, ...]
    write: tuple[float, ...]
    stored: int
    retrieved: int

    @property
    def seconds(self) -> float:
        """Of all calls."""
        return sum(self.retrieve) + sum(self.write)


class Ours:
    """A memory as a run has it, with the interface of `Direct`."""

    def __init__(self, system: str, directory: Path, gateway: Gateway) -> None:
        self._models = GatewayModels(
            Connection(gateway, run="benchmark", role="memory"),
            chat_model=system,
            embedding_model=EMBEDDING_MODEL,
            simulated=False,
        )
        adapter = load_adapter(system)
        self._memory = adapter.open(directory, self._models, adapter.Config(**SETTINGS.get(system, {})))
        self.write = self._memory.write

    def retrieve(self, query: str) -> int:
        """How many items are found."""
        return len(self._memory.retrieve(query))

    def stored(self) -> int:
        """How many entries there are."""
        return len(self._memory.snapshot().entries)

    def close(self) -> None:
        """Ends the use."""
        self._memory.close()


def _answers() -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """What the endpoint answers: the chat model's name says whose request it is."""
    embedder = MiniLMEmbedder()

    def chat(request: Any) -> dict[str, Any]:
        return load_adapter(request["model"]).simulate(request)

    def answer(path: str, body: dict[str, Any]) -> dict[str, Any]:
        _, data, _ = simulated_answer(path.removeprefix("/v1/"), body, chat=chat, embed=embedder.embed)
        found: dict[str, Any] = json.loads(data)
        if body.get("logprobs"):
            found["choices"][0]["logprobs"] = _logprobs(str(body["messages"][-1]["content"]))
        return found

    return answer


def _logprobs(question: str) -> dict[str, Any]:
    """The probability that a passage is relevant, for Graphiti's reranker: how much of it the query shares."""
    match = re.search(r"<PASSAGE>(.*?)</PASSAGE>.*?<QUERY>(.*?)</QUERY>", question, re.DOTALL)
    if match is None:
        raise ModelError("this is no question of Graphiti's reranker")
    passage, query = (set(re.findall(r"\w+", text.casefold())) for text in match.groups())
    probability = 0.5 + 0.49 * len(passage & query) / max(len(passage), 1)
    tokens = [
        {"token": token, "logprob": math.log(p), "bytes": None}
        for token, p in (("True", probability), ("False", 1 - probability))
    ]
    return {"content": [{**tokens[0], "top_logprobs": tokens}], "refusal": None}


def _sessions(count: int, directory: Path) -> list[SessionRecord]:
    """What the simulated agent leaves of the first sessions of the longest shipped trajectory."""
    trajectory = max(md.trajectories.load("same-domain"), key=lambda t: len(t.sessions))
    trajectory = trajectory.model_copy(update={"sessions": trajectory.sessions[:count]})
    if len(trajectory.sessions) < count:
        raise SystemExit(f"the longest trajectory has {len(trajectory.sessions)} sessions")
    md.run(trajectory, memory=Recorder, model="simulated", directory=directory)
    return Recorder.records


def _measured(system: Any, sessions: Sequence[SessionRecord]) -> Round:
    retrieve, write, retrieved = [], [], 0
    try:
        for record in sessions:
            start = time.perf_counter()
            retrieved += system.retrieve(record.request)
            middle = time.perf_counter()
            system.write(record)
            retrieve.append(middle - start)
            write.append(time.perf_counter() - middle)
        return Round(tuple(retrieve), tuple(write), system.stored(), retrieved)
    finally:
        system.close()


@dataclass(frozen=True)
class Side:
    """All rounds of one side. Seconds are those of the best round, call by call; ``median`` those of whole rounds."""

    retrieve: float
    write: float
    median: float
    stored: int
    retrieved: int

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Self:
        """Sums up."""
        return cls(
            sum(map(min, zip(*(r.retrieve for r in rounds), strict=True))),
            sum(map(min, zip(*(r.write for r in rounds), strict=True))),
            statistics.median(r.seconds for r in rounds),
            rounds[-1].stored,
            rounds[-1].retrieved,
        )

    @property
    def seconds(self) -> float:
        """Of all calls."""
        return self.retrieve + self.write


def _compared(name: str, url: str, gateway: Gateway, sessions: Sequence[SessionRecord], rounds: int) -> dict[str, Any]:
    def once(side: Callable[[Path], Any], records: Sequence[SessionRecord]) -> Round:
        with tempfile.TemporaryDirectory() as directory:
            return _measured(side(Path(directory)), records)

    sides: tuple[Callable[[Path], Any], ...] = (
        lambda directory: DIRECT[name](directory, url),
        lambda directory: Ours(name, directory, gateway),
    )
    for side in sides:  # ahead of the clock: imports, connections, and the endpoint's answers
        once(side, sessions)
    found: tuple[list[Round], list[Round]] = ([], [])
    for number in range(rounds):
        for i in (0, 1) if number % 2 == 0 else (1, 0):
            found[i].append(once(sides[i], sessions))
    work = {(r.stored, r.retrieved) for r in (*found[0], *found[1])}
    if len(work) > 1 or 0 in min(work):
        raise SystemExit(f"{name}: not all rounds stored and retrieved the same: {sorted(work)}; nothing is compared")
    direct, ours = map(Side.of, found)
    sys.stdout.write(
        f"{name}: ratio {direct.seconds / ours.seconds:.3f}; seconds direct/ours: "
        f"write {direct.write:.3f}/{ours.write:.3f}, retrieve {direct.retrieve:.3f}/{ours.retrieve:.3f}; "
        f"stored {ours.stored}, retrieved {ours.retrieved} on both sides\n"
    )
    sys.stdout.flush()
    return {
        "ours": round(ours.seconds, 3),
        "baseline": round(direct.seconds, 3),
        "ratio": round(direct.seconds / ours.seconds, 3),
        "write_ratio": round(direct.write / ours.write, 3),
        "retrieve_ratio": round(direct.retrieve / ours.retrieve, 3),
        "median_ratio": round(direct.median / ours.median, 3),
        "stored": ours.stored,
        "retrieved": ours.retrieved,
    }


@contextlib.contextmanager
def letta_server() -> Iterator[None]:
    """Letta's server, for both sides."""
    from memorydojo.adapters import _letta_server

    place = _letta_server.home()
    if not _letta_server.is_set_up(place):
        raise SystemExit("letta needs its server; set it up with: memorydojo letta set-up")
    with _letta_server.LettaServer(place) as server:
        DIRECT["letta"].server = (server.url, server.password)
        SETTINGS["letta"] = {"url": server.url}
        os.environ["LETTA_API_KEY"] = server.password
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=4, help="sessions of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", choices=DIRECT, default=[name for name in DIRECT if name != "letta"])
    options = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    with (
        tempfile.TemporaryDirectory() as scratch,
        letta_server() if "letta" in options.systems else contextlib.nullcontext(),
        endpoint(CHAT_SECONDS, embedding_latency=EMBEDDING_SECONDS, answer=_answers()) as url,
    ):
        sessions = _sessions(options.sessions, Path(scratch))
        models = {name: Model(backend="b") for name in (*options.systems, EMBEDDING_MODEL)}
        gateway = Gateway(Models(backends={"b": Backend(base_url=url, key_env="")}, models=models))
        systems = {n: _compared(n, url, gateway, sessions, options.rounds) for n in options.systems}
        gateway.close()
    name = min(systems, key=lambda n: systems[n]["ratio"])
    result = {
        "name": "adapters",
        "unit": "s",
        **{field: systems[name][field] for field in ("ours", "baseline", "ratio")},
        "baseline_is": f"{name}, the system with the least ratio, called directly: {options.sessions} retrievals and "
        "writes at the same endpoint "
        f"(chat {CHAT_SECONDS * 1000:.0f} ms, embeddings {EMBEDDING_SECONDS * 1000:.0f} ms)",
        "systems": systems,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
