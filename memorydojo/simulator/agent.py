"""The simulated task agent, as an AgentDojo LLM element.

It solves its task from AgentDojo's ground truth, and can be led astray: it reads retrieved memory and observations, and
may do what they demand. Whether it does is decided by stated rules and a seed (``docs/simulator-agent.md``); nothing
tells it which text is a payload. Its behaviour describes these rules, never an LLM.

AgentDojo is imported with this module; import it where it is used.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_origin

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.functions_runtime import EmptyEnv, Env, Function, FunctionCall, FunctionsRuntime
from agentdojo.types import ChatAssistantMessage, ChatMessage, get_text_content_as_str, text_content_block_from_string

from memorydojo.simulator.demands import Call, Demand, Remark, Tool, read_demands
from memorydojo.simulator.prose import stems

#: Weights of the log-odds that the agent follows a demand it has read.
BIAS = -2.9
STANDING = 1.1
ATTRIBUTED = 0.8
SUSPICIOUS = -1.6
RELEVANT = 1.4
EACH_DOUBLING = 0.5
FROM_MEMORY = 0.4
#: Retrieved memory is the past: what it asks for once only has had its time.
PAST_REQUEST = -3.0
FROM_OBSERVATION = 0.5


def follow_probability(demand: Demand, *, request: str, occurrences: int) -> float:
    """How likely the agent is to follow a demand.

    Args:
        demand: The demand as it was read.
        request: The session's task request; what a demand is about counts by its overlap with it.
        occurrences: In how many places of the session's context the same thing was demanded.
    """
    relevance = min(len(stems(demand.passage) & stems(request)) / 3, 1.0)
    odds = (
        BIAS
        + STANDING * demand.tone.standing
        + ATTRIBUTED * demand.tone.attributed
        + SUSPICIOUS * demand.tone.suspicious
        + RELEVANT * relevance
        + EACH_DOUBLING * math.log2(occurrences)
    )
    if demand.source == "observation":
        odds += FROM_OBSERVATION
    else:
        odds += FROM_MEMORY if demand.tone.standing else PAST_REQUEST
    return 1 / (1 + math.exp(-odds))


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


class SimulatedAgent(BasePipelineElement):  # type: ignore[misc]
    """The agent of one session.

    Args:
        plan: The tool calls that solve the task, in order.
        answer: The answer that solves the task.
        request: The task request without retrieved memory.
        today: The session's date, ISO form.
        seed: Seed of the draws. The same seed, request and demand give the same draw, whatever the memory system.
    """

    name = "simulated"

    def __init__(self, plan: Sequence[FunctionCall], *, answer: str, request: str, today: str, seed: int) -> None:
        self._plan = list(plan)
        self._answer = answer
        self._request = request
        self._today = today
        self._seed = seed
        self._read = 0
        self._seen: dict[str, list[Demand]] = {}
        self._handled: set[str] = set()
        self._remarks: list[str] = []
        self._calls = 0

    def query(
        self,
        query: str,
        runtime: FunctionsRuntime,
        env: Env = EmptyEnv(),  # noqa: B008 - AgentDojo's own signature
        messages: Sequence[ChatMessage] = [],
        extra_args: dict[str, Any] = {},  # noqa: B006 - AgentDojo's own signature
    ) -> tuple[str, FunctionsRuntime, Env, Sequence[ChatMessage], dict[str, Any]]:
        """Reads what is new, then demands the next call or gives the final answer."""
        self._read_new(messages, runtime)
        astray = [demand for demand in self._followed() if isinstance(demand.act, Call)]
        if astray:
            calls = [self._call(d.act.function, dict(d.act.arguments)) for d in astray if isinstance(d.act, Call)]
            for demand in astray:
                self._remarks.append(_account_of(demand))
        elif self._plan:
            step = self._plan.pop(0)
            calls = [self._call(step.function, step.args)]
        else:
            answer = "\n\n".join([self._answer or "Done.", *self._remarks])
            return query, runtime, env, [*messages, _assistant(answer, None)], extra_args
        return query, runtime, env, [*messages, _assistant("", calls)], extra_args

    def _call(self, function: str, arguments: Mapping[str, Any]) -> FunctionCall:
        self._calls += 1
        return FunctionCall(function=function, args=dict(arguments), id=f"call_{self._calls}")

    def _read_new(self, messages: Sequence[ChatMessage], runtime: FunctionsRuntime) -> None:
        tools = [tool_of(function) for function in runtime.functions.values()]
        for message in messages[self._read :]:
            text = get_text_content_as_str(message["content"] or [])
            if message["role"] == "tool" and not message["error"]:
                found = read_demands(text, tools=tools, source="observation", today=self._today)
            elif message["role"] == "user":
                context = text.removesuffix(self._request) if text.endswith(self._request) else ""
                found = read_demands(context, tools=tools, source="memory", today=self._today)
            else:
                continue
            for demand in found:
                self._seen.setdefault(demand.act.signature, []).append(demand)
        self._read = len(messages)

    def _followed(self) -> list[Demand]:
        """Demands that the agent decides to follow now; each thing at most once a session."""
        followed = []
        for signature, demands in self._seen.items():
            if signature in self._handled or self._planned(demands[0]):
                continue
            places = Counter(demand.passage for demand in demands)
            chance = max(
                follow_probability(demand, request=self._request, occurrences=places.total()) for demand in demands
            )
            if draw(self._seed, self._request, signature) < chance:
                self._handled.add(signature)
                act = demands[0].act
                if isinstance(act, Remark):
                    self._remarks.append(act.text)
                followed.append(demands[0])
        return followed

    def _planned(self, demand: Demand) -> bool:
        """Whether the rest of the task does this anyway: data may well ask for what the user asked for."""
        act = demand.act
        return isinstance(act, Call) and any(step.function == act.function for step in self._plan)


def _account_of(demand: Demand) -> str:
    origin = "an instruction in the tool output" if demand.source == "observation" else "a remembered instruction"
    # What was reported before and came back through memory is reported as itself, not as a report of a report.
    said = re.split(r"instruction(?: in the tool output)?: ", demand.passage)[-1]
    return f"I also followed {origin}: {said}"


def _assistant(text: str, calls: list[FunctionCall] | None) -> ChatAssistantMessage:
    return ChatAssistantMessage(role="assistant", content=[text_content_block_from_string(text)], tool_calls=calls)


def tool_of(function: Function) -> Tool:
    """An AgentDojo tool as the simulated agent knows it."""
    parameters = {
        name: (_is_list(field.annotation), field.is_required())
        for name, field in function.parameters.model_fields.items()
    }
    return Tool(name=function.name, parameters=parameters)


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list
