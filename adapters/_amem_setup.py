"""Loading a-mem so that it works offline, without the packages that it names and, on this path, never uses."""

import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from memorydojo.errors import MemorySystemError, MissingPackageError

#: What A-MEM needs here: module and distribution.
PACKAGES = {"agentic_memory": "a-mem", "chromadb": "chromadb"}

#: Adds them with pip and nothing else; the requirements of a-mem itself would bring torch.
INSTALL = "pip install 'chromadb>=1.5' && pip install --no-deps a-mem==0.2.6"

#: What a-mem imports for its other back ends and embedders: module and names. Importing the real ones takes half a
#: minute, and litellm asks the network for a price list.
_UNUSED = {
    "litellm": ("completion",),
    "nltk": (),
    "nltk.tokenize": ("word_tokenize",),
    "rank_bm25": ("BM25Okapi",),
    "sentence_transformers": ("SentenceTransformer",),
    "sklearn": (),
    "sklearn.metrics": (),
    "sklearn.metrics.pairwise": ("cosine_similarity",),
    "transformers": ("AutoModel", "AutoTokenizer"),
}
LOGGER = "agentic_memory"
_LOCK = threading.RLock()


def require_packages() -> None:
    """Checks that every part is installed.

    Raises:
        MissingPackageError: One is not.
    """
    for module, distribution in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise MissingPackageError(distribution, "the memory system 'a-mem'", "a-mem", command=INSTALL)


@functools.lru_cache(maxsize=1)
def load() -> ModuleType:
    """Imports a-mem and makes it log what it would print; returns ``agentic_memory.memory_system``."""
    importlib.import_module("chromadb")  # first, so that nothing of its own meets a placeholder
    with _placeholders():
        main = importlib.import_module("agentic_memory.memory_system")
        others = [importlib.import_module(f"agentic_memory.{name}") for name in ("retrievers", "llm_controller")]
    for module in (main, *others):
        module.print = _logged  # type: ignore[attr-defined]
    return main


@contextlib.contextmanager
def _placeholders() -> Iterator[None]:
    """Puts empty modules in the place of packages that are not imported yet, for as long as a-mem is imported."""
    made = {}
    with _LOCK:
        for name, attributes in _UNUSED.items():
            if name.partition(".")[0] not in sys.modules or name.partition(".")[0] in made:
                made[name] = ModuleType(name)
                made[name].__path__ = []
                vars(made[name]).update(dict.fromkeys(attributes, _unused))
        sys.modules.update(made)
        try:
            yield
        finally:
            for name, module in made.items():
                if sys.modules.get(name) is module:
                    del sys.modules[name]


def _unused(*args: Any, **kwargs: Any) -> None:
    raise NotImplementedError("this part of a-mem was left out, because MemoryDojo does not use it")


def _logged(*values: Any, **options: Any) -> None:
    """Stands in for ``print`` in a-mem, which prints its failures and goes on."""
    logging.getLogger(LOGGER).warning("%s", " ".join(map(str, values)))


@contextlib.contextmanager
def built_from(**parts: Any) -> Iterator[None]:
    """Lets a-mem build itself from ``parts`` instead of its own, by their names in ``agentic_memory.memory_system``."""
    main = load()
    with _LOCK:
        before = {name: getattr(main, name) for name in parts}
        vars(main).update(parts)
        try:
            yield
        finally:
            vars(main).update(before)


class _Process:
    """Whether Chroma works in this process. In a fork of one that has used it, its first call never returns."""

    def __init__(self) -> None:
        self._used = self._broken = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._broken = self._used

    def use(self, call: str) -> None:
        """Notes that Chroma is used from here on.

        Raises:
            MemorySystemError: It cannot be.
        """
        if self._broken:
            raise MemorySystemError(
                "a-mem",
                call,
                "this process was forked from one that had used Chroma, which does not survive that",
                "Start workers with the start method 'spawn' or 'forkserver'.",
            )
        self._used = True


PROCESS = _Process()
