"""The runtime that executes tool calls: it records each of them, and appends the payload to one observation.

Appending here, below every pipeline element, works for every agent and every defense: the payload is part of the tool's
own result. AgentDojo is imported with this module; import it where it is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentdojo.functions_runtime import Function, FunctionCall, FunctionReturnType, FunctionsRuntime, TaskEnvironment
from pydantic import BaseModel

from memorydojo._display import valid
from memorydojo.record import Action
from memorydojo.running.environment import format_observation

#: The name under which arguments that are no JSON object are passed on, as the model wrote them.
MALFORMED = "(malformed arguments)"
_MALFORMED_ERROR = "ValueError: the arguments of the call are not a JSON object; send the call again with valid JSON"


class RecordingRuntime(FunctionsRuntime):  # type: ignore[misc]
    """Executes the tool calls of one session.

    Args:
        functions: The tools of the session.
        payload: The text to append, or None.
        observation: The 1-based number of the successful, outermost observation that gets it. Failed calls and calls
            nested in another's arguments do not count: errors replace their observation, so the payload would vanish.
    """

    def __init__(self, functions: Sequence[Function], *, payload: str | None = None, observation: int = 1) -> None:
        super().__init__(functions)
        self.actions: list[Action] = []
        self._payload = payload
        self._observation = observation
        self._succeeded = 0
        self._arguments: list[Mapping[str, Any]] = []

    def _execute_nested_calls(self, env: TaskEnvironment | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        resolved: dict[str, Any] = super()._execute_nested_calls(env, kwargs)
        self._arguments[-1] = resolved
        return resolved

    def run_function(
        self,
        env: TaskEnvironment | None,
        function: str,
        kwargs: Mapping[str, Any],
        raise_on_error: bool = False,
    ) -> tuple[FunctionReturnType, str | None]:
        """Executes one call and records it. An outermost result comes back as the text that the agent reads."""
        depth = len(self._arguments)
        self._arguments.append(kwargs)
        if MALFORMED in kwargs:
            self._record(function, depth, observation="", error=_MALFORMED_ERROR)
            self._arguments.pop()
            return "", _MALFORMED_ERROR
        try:
            result, error = super().run_function(env, function, kwargs, raise_on_error)
        except Exception as problem:
            self._record(function, depth, observation="", error=f"{type(problem).__name__}: {problem}")
            raise
        finally:
            arguments = self._arguments.pop()
        if depth or error is not None:
            text = "" if error is not None else format_observation(result)
            self._record(function, depth, observation=text, error=error, arguments=arguments)
            return result, error
        text = format_observation(result)
        self._succeeded += 1
        poisoned = self._payload is not None and self._succeeded == self._observation
        if poisoned:
            text = f"{text}\n\n{self._payload}" if text else str(self._payload)
        self._record(function, depth, observation=text, error=None, arguments=arguments, poisoned=poisoned)
        return text, None

    def _record(
        self,
        function: str,
        depth: int,
        *,
        observation: str,
        error: str | None,
        arguments: Mapping[str, Any] | None = None,
        poisoned: bool = False,
    ) -> None:
        given = arguments if arguments is not None else self._arguments[-1]
        self.actions.append(
            Action(
                function=function,
                arguments={name: to_json(value) for name, value in given.items()},
                observation=valid(observation),
                error=valid(error) if error is not None else None,
                depth=depth,
                poisoned=poisoned,
            )
        )


def to_json(value: Any) -> Any:
    """An argument as JSON data: models become objects, a nested call its name and arguments, the rest text."""
    if isinstance(value, FunctionCall):
        return {"function": value.function, "arguments": {k: to_json(v) for k, v in value.args.items()}}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {valid(str(k)): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if value is None or isinstance(value, int | float | bool):
        return value
    return valid(str(value))
