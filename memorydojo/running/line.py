"""The line from one run to its models: the memory's models, the agent's LLM element, and what both have used."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo._load import load_function
from memorydojo.adapter import MemoryAdapter
from memorydojo.errors import EndpointDownError
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import SIMULATED, Route
from memorydojo.models.connection import Connection
from memorydojo.models.through import GatewayModels
from memorydojo.models.usage import ModelUse, Usage, Waiting
from memorydojo.runs.model import RunPlan

if TYPE_CHECKING:
    from memorydojo.models.gateway import Gateway


class Line:
    """Everything that a run asks of models goes through here.

    Attributes:
        memory: The memory side's models.
        uses: The models by what they do, as saved with the run.
        replay: Where answers come from.
        simulated: Whether a chat model of the run is the simulator.
    """

    def __init__(
        self, gateway: "Gateway", token: str, plan: RunPlan, *, uses: dict[str, ModelUse], replay: Replay
    ) -> None:
        self.uses = uses
        self.replay: Replay = replay
        self.simulated = SIMULATED in (plan.model, plan.memory_model)
        self.memory = GatewayModels(
            Connection(gateway, run=token, role="memory"),
            chat_model=plan.memory_model,
            embedding_model=plan.embedding_model,
            simulated=plan.memory_model == SIMULATED,
        )
        self._gateway, self._token, self._plan = gateway, token, plan
        self._connection = Connection(gateway, run=token, role="agent")
        self._client: Any = None

    def begin_session(self, number: int) -> None:
        """Says which session is under way."""
        self._gateway.session(self._token, number)

    def check(self) -> None:
        """Stops the run if no further call of its can succeed.

        Raises:
            EndpointDownError: An endpoint or its key is dead, or an answer is not recorded in a pure replay.
        """
        reason = self._gateway.trouble(self._token)
        if reason is not None:
            raise EndpointDownError(reason)

    def agent(self) -> Any:
        """The LLM element of a real model, for one session.

        Raises:
            InvalidInputError: The plan's own element cannot be made.
        """
        from memorydojo.running.llm import ChatLLM

        if self._plan.agent is None:
            return ChatLLM(self._connection, self._plan.model, client=self._openai)
        return load_function("agent", self._plan.agent)(self._openai(), self._plan.model)

    def _openai(self) -> Any:
        """An OpenAI client of the gateway, for elements that are not ours."""
        if self._client is None:
            import openai

            # The gateway retries and keeps the endpoint's timeouts; waiting for it must not be cut short here.
            self._client = openai.OpenAI(
                base_url=self._connection.base_url,
                api_key=self._connection.secret,
                max_retries=0,
                timeout=None,
                # Loopback needs no certificates, and loading them takes as long as many calls.
                http_client=openai.DefaultHttpxClient(verify=False, timeout=None),
            )
        return self._client

    def usage(self, session: int) -> tuple[tuple[Usage, ...], tuple[Waiting, ...]]:
        """What a session that has ended used, and what it waited for."""
        counts = self._gateway.settled(self._token, session)
        return tuple(count.usage for count in counts), tuple(count.waiting for count in counts)

    def ordinals(self) -> dict[str, int]:
        """How often each request was made so far; another line can `resume` from it."""
        return self._gateway.ordinals(self._token)

    def resume(self, ordinals: Mapping[str, int]) -> None:
        """Counts equal requests on from there, so that what opening a copy asked does not shift them."""
        self._gateway.resume(self._token, ordinals)

    def link(self, name: str) -> None:
        """Lets a replay under ``name`` find the answers that were recorded on this line."""
        if name != self._token:
            self._gateway.link(name, self._token)

    def close(self) -> None:
        """Closes what connections to the gateway there are; the gateway itself serves other runs too."""
        if self._client is not None:
            self._client.close()


def connect(
    plan: RunPlan,
    token: str,
    adapter: type[MemoryAdapter],
    *,
    access: Access,
    directory: Path,
    prefix: str | None = None,
) -> Line:
    """Opens the line of a run.

    Args:
        plan: The run's plan.
        token: What the gateway knows the run by; says nothing about the attack.
        adapter: The memory system, whose simulated model may be asked.
        access: Models, keys and replay.
        directory: The directory of the runs.
        prefix: The token of the shared sessions that this run goes on from.
    """
    from memorydojo.simulator.embedder import MiniLMEmbedder

    routes = routes_of(plan, access)
    real = any(route.backend.kind != "simulated" for route in routes.values())
    gateway = access.gateway(directory, record=real)
    gateway.begin(token, prefix=prefix)
    gateway.register(token, chat=adapter.simulate, embed=MiniLMEmbedder().embed)
    return Line(gateway, token, plan, uses=uses_of(plan, access), replay=access.replay)


def routes_of(plan: RunPlan, access: Access) -> dict[str, Route]:
    """The ways to a plan's models, by what they do."""
    names = {"agent": plan.model, "memory": plan.memory_model, "embedding": plan.embedding_model}
    return {role: access.models.route(name) for role, name in names.items()}


def uses_of(plan: RunPlan, access: Access) -> dict[str, ModelUse]:
    """How a plan's models are used, as saved with the run."""
    return {role: ModelUse.of(route) for role, route in routes_of(plan, access).items()}
