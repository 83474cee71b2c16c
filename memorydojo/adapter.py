"""The contract between the runner and a memory system, and the registry of adapters.

An adapter sees sessions and queries, nothing else: no payload, objective, label or outcome ever reaches it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from memorydojo._base import Frozen
from memorydojo._installed import installed, load_installed
from memorydojo.errors import InvalidInputError, MemoryDojoError, UnknownNameError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryItem, SessionRecord, Snapshot

ENTRY_POINT_GROUP = "memorydojo.adapters"


class AdapterConfig(Frozen):
    """Base of every adapter's settings; unknown settings are errors."""


class MemoryDescription(Frozen):
    """What a memory system is and how it was set up; saved with every run and read by the optimizer.

    Attributes:
        name: The adapter's name.
        versions: Versions of the packages and servers that matter, by distribution name.
        settings: The adapter's settings as JSON data.
        modes: Named choices that were in force, for example which reranker ran.
        limits: Honest limits, one sentence each.
        writes: What a write takes in and how the system transforms it.
        stores: The stored representations.
        retrieves: How entries are found.
        presents: How found entries are delivered to the agent.
    """

    name: str
    versions: dict[str, str] = {}
    settings: dict[str, Any] = {}
    modes: dict[str, str] = {}
    limits: tuple[str, ...] = ()
    writes: str
    stores: str
    retrieves: str
    presents: str


class MemoryAdapter(ABC):
    """One memory system behind the retrieve-interact-write cycle (paper, section 4.2).

    One instance belongs to one run. All its state lives below one directory.

    Attributes:
        name: The name under which it is registered.
        packages: Distributions that it needs beyond MemoryDojo's own, for ``memorydojo doctor``.
        extra: The extra of MemoryDojo that brings them, if one does.
        install: The command that adds them, if another one is better than ``pip install 'memorydojo[extra]'``.
        embeds: Whether it asks for embeddings. Where no real model makes them it needs the extra ``simulator`` too.
        Config: Its settings.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str | None] = None
    install: ClassVar[str | None] = None
    embeds: ClassVar[bool] = True
    Config: ClassVar[type[AdapterConfig]] = AdapterConfig

    @classmethod
    @abstractmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory in ``directory``: new if it is empty, else what an earlier instance left there.

        Args:
            directory: An existing directory that belongs to this memory alone.
            models: The chat and embedding model that the system must use for all its requests.
            config: An instance of this class's ``Config``.

        Raises:
            MissingPackageError: The system's package is not installed.
            MemorySystemError: The directory cannot be opened.
        """

    @abstractmethod
    def write(self, record: SessionRecord) -> None:
        """Writes one session; returns when the memory has finished processing it.

        Raises:
            MemorySystemError: The write failed, in whole or in part. Never swallowed.
        """

    @abstractmethod
    def retrieve(self, query: str) -> list[MemoryItem]:
        """The items for ``query`` in the order of delivery. Read-only: the snapshot stays the same.

        Raises:
            MemorySystemError: The retrieval failed.
        """

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Every stored entry, complete, with native ids."""

    @abstractmethod
    def checkpoint(self, target: Path) -> None:
        """Writes a consistent copy into the empty or missing directory ``target``.

        ``open`` on the copy continues as if nothing had happened; the original can go on too.
        """

    @abstractmethod
    def describe(self) -> MemoryDescription:
        """Versions, settings, modes and limits of this instance."""

    @abstractmethod
    def close(self) -> None:
        """Releases files, servers and threads. May be called more than once."""

    @classmethod
    def missing(cls) -> str | None:
        """What this machine lacks beyond ``packages``, with the command that adds it; None if nothing.

        For ``memorydojo doctor``: a memory system that needs a server says here whether one is there.
        """
        return None

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """The simulated memory-side model: answers one of this system's own chat requests, offline.

        It extracts from the request's own text by stated rules and is blind to payloads and labels.

        Args:
            request: A chat completions request that this system makes.

        Returns:
            The assistant message, for example ``{"role": "assistant", "content": "..."}``.

        Raises:
            MemoryDojoError: The system makes no such request.
        """
        raise MemoryDojoError(
            f"the adapter {cls.name!r} has no simulated memory-side model; "
            "run it with a real model, or give it a `simulate` classmethod"
        )


def adapters() -> dict[str, str]:
    """Names of all installed adapters and where each is found, as ``module:Class``.

    Third parties add one by an entry point in the group ``memorydojo.adapters``.

    Raises:
        InvalidInputError: Two installed packages claim the same name.
    """
    return dict(installed(ENTRY_POINT_GROUP, "memory adapter"))


def load_adapter(memory: "str | type[MemoryAdapter]") -> type[MemoryAdapter]:
    """Finds an adapter class.

    Args:
        memory: A registered name, ``"module:Class"``, or the class itself.

    Raises:
        UnknownNameError: No adapter has this name.
        InvalidInputError: ``module:Class`` cannot be imported or is no adapter.
    """
    if isinstance(memory, type):
        return _checked(memory, memory.__qualname__)
    if ":" not in memory:
        known = adapters()
        if memory not in known:
            raise UnknownNameError("memory system", memory, known)
        memory = known[memory]
    found = load_installed("memory adapter", memory)
    return _checked(found, memory)


def _checked(found: Any, name: str) -> type[MemoryAdapter]:
    if not (isinstance(found, type) and issubclass(found, MemoryAdapter)):
        raise InvalidInputError(f"{name} is no memory adapter; derive it from memorydojo.MemoryAdapter")
    return found
