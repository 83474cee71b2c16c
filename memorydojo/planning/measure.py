"""Measures what a session of each memory system asks of models, on the offline simulator.

``python -m memorydojo.planning.measure`` writes ``measured.json`` beside this file. The estimates of ``--dry-run`` are
made from it where a directory holds no runs of the same memory system and model. A system that cannot be run here is
left out.
"""

import argparse
import json
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo.errors import MemoryDojoError
from memorydojo.planning.growth import Asked, Measured, PerSession

if TYPE_CHECKING:
    from memorydojo.runs import Run, SessionResult

FILE = Path(__file__).with_name("measured.json")
TRAJECTORIES = ("workspace-020-01", "travel-020-01", "banking-015-01", "slack-015-01")
ABOUT = (
    "Simulated agent and simulated memory-side model over the trajectories "
    + ", ".join(TRAJECTORIES)
    + ", seed-1 inserted in the first session; means over sessions, and for tokens sent lines of least squares over "
    "the session's number. Tokens are characters divided by four. The agent's calls are those that its saved messages "
    "needed, each with the tool schemas of its domain and everything before it. A real model may reason, repeat and "
    "retry: it asks for more."
)


def _agent(result: "SessionResult", tools: int) -> dict[str, float]:
    """What a chat model would have been asked for the messages of a session."""
    sent = read = made = 0
    context = tools + len(result.prompt)
    for message in result.messages[1:]:
        size = len(message.text or "") + len(json.dumps([call.model_dump(mode="json") for call in message.tool_calls]))
        if message.role == "assistant":
            sent, read, made = sent + 1, read + context, made + size
        context += size
    return {"calls": sent, "input_tokens": read / 4, "output_tokens": made / 4}


def _memory(result: "SessionResult", *, embedding: str, chat: bool) -> dict[str, float]:
    used = [u for u in result.usage if u.role == "memory" and (u.model == embedding) is not chat]
    return {name: float(sum(getattr(u, name) for u in used)) for name in ("calls", "input_tokens", "output_tokens")}


def per_session(runs: "list[Run]", *, agent_messages: bool) -> PerSession:
    """What a session asks, from saved runs of one memory system and one set of models.

    Args:
        runs: The runs.
        agent_messages: Whether the agent's calls are made out from its messages: the simulator makes none.
    """
    agent, memory, embedding = [], [], []
    for run in runs:
        name = run.plan.embedding_model
        for result in run.sessions:
            if not result.completed:
                continue
            if agent_messages:
                agent.append((result.session, _agent(result, _tools(result.domain))))
            else:
                used = [u for u in result.usage if u.role == "agent"]
                counts = ("calls", "input_tokens", "output_tokens")
                agent.append((result.session, {n: float(sum(getattr(u, n) for u in used)) for n in counts}))
            memory.append((result.session, _memory(result, embedding=name, chat=True)))
            embedding.append((result.session, _memory(result, embedding=name, chat=False)))
    return PerSession(
        sessions=len(memory),
        longest=max((t for t, _ in memory), default=0),
        agent=Asked.through(agent),
        memory=Asked.through(memory),
        embedding=Asked.through(embedding),
    )


@lru_cache(maxsize=8)
def _tools(domain: str) -> int:
    """Characters of the tool schemas of a domain."""
    from memorydojo.running import environment

    functions = environment.runtime_functions(domain)
    return sum(len(json.dumps([f.name, f.description, f.parameters.model_json_schema()])) for f in functions)


def measure(memories: list[str], directory: Path) -> Measured:
    """Runs the trajectories with each memory system and measures."""
    import memorydojo as md

    trajectories = md.trajectories.load("same-domain")
    found: dict[str, PerSession] = {}
    versions: dict[str, str] = {}
    for memory in memories:
        try:
            runs = [
                md.run(
                    trajectories[name],
                    memory,
                    directory=directory / memory,
                    attack=md.Attack(objective=name.partition("-")[0], payload="seed-1"),
                )
                for name in TRAJECTORIES
            ]
        except MemoryDojoError as error:
            sys.stderr.write(f"{memory} is left out: {error}\n")
            continue
        found[memory] = per_session(runs, agent_messages=True)
        versions |= runs[0].header.versions | runs[0].header.memory.versions
        sys.stderr.write(f"{memory}: {found[memory].sessions} sessions\n")
    return Measured(about=ABOUT, versions=versions, memories=found)


def main() -> None:
    """Measures all memory systems that are installed, and writes the file."""
    from memorydojo.adapter import adapters

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("memories", nargs="*", help="memory systems; all that are registered if none is given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        measured = measure(arguments.memories or sorted(adapters()), Path(directory))
    arguments.out.write_text(json.dumps(measured.model_dump(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
