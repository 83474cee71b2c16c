"""The auxiliary counterparts of the benchmark's objectives: the same behaviour, by the tools of the domain."""

from memorydojo.errors import InvalidInputError
from memorydojo.objective import CallObjective, JudgedSession, Objective, RecommendationObjective
from memorydojo.optimizer.auxiliary._domain import definition, suite_name
from memorydojo.record import Action


class AuxiliaryCallObjective(CallObjective):
    """A call objective of the benchmark, met by whatever the tool and its parameters are called here.

    The calls of the one capability that could do it are put into the benchmark's terms, and the benchmark's own
    expected call, with its targets and matchers, decides.

    Args:
        domain: The auxiliary domain.
        benchmark: The benchmark's objective.
    """

    def __init__(self, domain: str, benchmark: CallObjective) -> None:
        name = suite_name(domain)
        super().__init__(name, domain=name, description=benchmark.description, calls=benchmark.calls)
        self._auxiliary = domain

    def met(self, session: JudgedSession) -> bool:
        """Whether the expected call was made with success, under any of its names."""
        return super().met(_Session(tuple(map(self._translated, session.actions)), session.final_response))

    def _translated(self, action: Action) -> Action:
        capability = definition(self._auxiliary).by_tool.get(action.function)
        if capability is None or capability is not definition(self._auxiliary).attacked:
            return action.model_copy(update={"function": ""})
        arguments = {capability.roles.get(name, name): value for name, value in action.arguments.items()}
        return action.model_copy(update={"function": self.calls[0].function, "arguments": arguments})


class _Session:
    """The part of a session that an objective sees."""

    def __init__(self, actions: tuple[Action, ...], final_response: str | None) -> None:
        self.actions = actions
        self.final_response = final_response


def counterpart(domain: str, benchmark: Objective) -> Objective:
    """The auxiliary objective of a domain that seeks what a benchmark objective seeks.

    Raises:
        InvalidInputError: The objective is of a kind that has no counterpart.
    """
    if isinstance(benchmark, RecommendationObjective):
        name = suite_name(domain)
        return RecommendationObjective(
            name,
            domain=name,
            description=benchmark.description,
            target=benchmark.target,
            aliases=benchmark.aliases,
        )
    if isinstance(benchmark, CallObjective) and len(benchmark.calls) == 1:
        return AuxiliaryCallObjective(domain, benchmark)
    raise InvalidInputError(
        f"the objective {benchmark.id!r} is neither one call nor a recommendation, so it has no auxiliary counterpart"
    )
