"""How much a session asks of models, by its number in the run: memories grow, and so does what they are asked."""

from collections.abc import Iterable
from typing import Self

from memorydojo._base import Frozen

COUNTS = ("calls", "input_tokens", "output_tokens")


class Line(Frozen):
    """A straight line through what was measured.

    Attributes:
        first: The value in the first session.
        growth: How much it grows from session to session.
    """

    first: float = 0.0
    growth: float = 0.0

    def at(self, session: int) -> float:
        """The value in a session; never below 0."""
        return max(self.first + self.growth * (session - 1), 0.0)

    @classmethod
    def through(cls, points: Iterable[tuple[int, float]], *, level: bool = False) -> Self:
        """The line of least squares through values by session; level if all are of one session, or if it is to be."""
        found = list(points)
        if not found:
            return cls()
        mean_t = sum(t for t, _ in found) / len(found)
        mean = sum(value for _, value in found) / len(found)
        spread = 0.0 if level else sum((t - mean_t) ** 2 for t, _ in found)
        growth = sum((t - mean_t) * (value - mean) for t, value in found) / spread if spread else 0.0
        return cls(first=round(mean - growth * (mean_t - 1), 2), growth=round(growth, 4))


class Asked(Frozen):
    """What one session asks of one kind of model.

    Attributes:
        calls: Requests.
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
    """

    calls: Line = Line()
    input_tokens: Line = Line()
    output_tokens: Line = Line()

    @classmethod
    def through(cls, points: Iterable[tuple[int, dict[str, float]]]) -> Self:
        """What was asked, from counts by session.

        What is sent grows with the memory. Calls and answers depend on the task; a slope through them would carry the
        order of a few tasks over to sessions that nobody measured.
        """
        found = list(points)
        return cls(
            **{
                name: Line.through(((t, counts[name]) for t, counts in found), level=name != "input_tokens")
                for name in COUNTS
            }
        )


class PerSession(Frozen):
    """What one session of a memory system asks.

    Attributes:
        sessions: How many sessions were measured.
        longest: The largest number of a session among them; what lies beyond is extrapolated.
        agent: Of the task agent's model.
        memory: Of the memory side's chat model.
        embedding: Of the embedding model.
    """

    sessions: int
    longest: int
    agent: Asked = Asked()
    memory: Asked = Asked()
    embedding: Asked = Asked()


class Measured(Frozen):
    """The file of what was measured offline.

    Attributes:
        about: How it was measured.
        versions: Of what it was measured with.
        memories: What was measured, by memory system.
    """

    about: str
    versions: dict[str, str]
    memories: dict[str, PerSession]
