"""What A-MEM's adapter does to its process, its disk and the network, each in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memorydojo.adapters.amem import AMemAdapter, AMemConfig
from memorydojo.models.simulated import SimulatedModels
from memorydojo.testing import make_session, standing_statement

pytestmark = pytest.mark.slow
PRELUDE = """
import os, signal, sys
from pathlib import Path
from memorydojo.adapters.amem import AMemAdapter, AMemConfig
from memorydojo.models.simulated import SimulatedModels
from memorydojo.testing import make_session, standing_statement, QUERY
def opened(name, models=None):
    directory = Path(sys.argv[1]) / name
    directory.mkdir(exist_ok=True)
    return AMemAdapter.open(directory, models or SimulatedModels(AMemAdapter.simulate), AMemConfig())
def write(memory, *numbers):
    for n in numbers:
        memory.write(make_session(n, standing_statement(n)))
"""
UNUSED = ("litellm", "rank_bm25", "sentence_transformers", "transformers", "sklearn", "nltk")


def run(code: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code, str(directory)],
        env={**os.environ, "HOME": str(directory), **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def open_amem(directory: Path) -> AMemAdapter:
    directory.mkdir(exist_ok=True)
    return AMemAdapter.open(directory, SimulatedModels(AMemAdapter.simulate), AMemConfig())


@pytest.mark.parametrize("moment", range(1, 7))
def test_a_process_killed_in_a_write_leaves_the_memory_as_before(tmp_path: Path, moment: int) -> None:
    # The moments: analysis, search, evolution, two rewritten neighbours (deleted already), the new note.
    done = run(
        "class Deadly(SimulatedModels):\n"
        "    left = None\n"
        "    def count(self):\n"
        "        if self.left is not None:\n"
        "            self.left -= 1\n"
        "            if not self.left:\n"
        "                os.kill(os.getpid(), signal.SIGKILL)\n"
        "    def chat(self, request):\n"
        "        self.count()\n"
        "        return super().chat(request)\n"
        "    def embed(self, texts):\n"
        "        self.count()\n"
        "        return super().embed(texts)\n"
        "models = Deadly(AMemAdapter.simulate)\n"
        "memory = opened('a', models)\n"
        "write(memory, 1, 2)\n"
        f"models.left = {moment}\n"
        "write(memory, 3)\n",
        tmp_path,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / "a" / "before-write").exists()
    survivor, clean = open_amem(tmp_path / "a"), open_amem(tmp_path / "b")
    for number in (1, 2):
        clean.write(make_session(number, standing_statement(number)))
    before = survivor.snapshot(), clean.snapshot()
    for memory in (survivor, clean):
        memory.write(make_session(3, standing_statement(3)))
    after = survivor.snapshot(), clean.snapshot()
    survivor.close()
    clean.close()
    assert before[0] == before[1]
    assert after[0] == after[1]
    assert not (tmp_path / "a" / "before-write").exists()


def test_a_whole_life_leaves_no_trace_and_asks_nobody(tmp_path: Path) -> None:
    done = run(
        "asked = []\n"
        "sys.addaudithook(lambda event, args: asked.append((event, args)) if event in "
        "('socket.connect', 'socket.getaddrinfo', 'subprocess.Popen', 'urllib.Request') else None)\n"
        "first, second = opened('a'), opened('b')\n"
        "write(first, 1, 2, 3)\n"
        "first.retrieve(QUERY)\n"
        "first.checkpoint(Path(sys.argv[1]) / 'c')\n"
        "first.close(); second.close()\n"
        "assert not asked, asked\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_the_environment_and_the_folder_cannot_turn_telemetry_on_or_the_store_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANONYMIZED_TELEMETRY=True\nCHROMA_OTEL_COLLECTION_ENDPOINT=http://127.0.0.1:9\n")
    done = run(
        "memory = opened('a')\n"
        "write(memory, 1, 2)\n"
        "settings = memory._system.retriever.client.get_settings()\n"
        "assert not settings.anonymized_telemetry\n"
        "assert not settings.chroma_otel_collection_endpoint\n"
        "assert settings.persist_directory == str(Path(sys.argv[1]) / 'a' / 'chroma')\n"
        "memory.close()\n",
        tmp_path,
        CHROMA_API_IMPL="chromadb.api.fastapi.FastAPI",
        CHROMA_SERVER_HOST="127.0.0.1",
        CHROMA_SERVER_HTTP_PORT="9",
        ANONYMIZED_TELEMETRY="True",
    )
    assert done.returncode == 0, done.stderr


def test_an_openai_key_is_neither_needed_nor_used(tmp_path: Path) -> None:
    code = "m = opened('a')\nwrite(m, 1, 2)\nm.close()\nassert 'openai' not in sys.modules\n"
    done = run(code, tmp_path, OPENAI_API_KEY="", OPENROUTER_API_KEY="sk-or-nothing")
    assert done.returncode == 0, done.stderr


def test_what_amem_never_uses_here_is_not_imported_even_if_it_is_installed(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    for name in (*UNUSED, "torch"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text(f"raise SystemExit('{name} was imported')\n")
    done = run(
        "memory = opened('a')\nwrite(memory, 1, 2)\nmemory.close()\n"
        f"assert not any(name.split('.')[0] in {(*UNUSED, 'torch')!r} for name in sys.modules)\n",
        tmp_path,
        PYTHONPATH=str(packages),
    )
    assert done.returncode == 0, done.stderr


def test_what_was_imported_before_is_used_and_left_alone(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "litellm.py").write_text("completion = 'the real one'\n")
    done = run(
        "import litellm\n"
        "memory = opened('a')\nwrite(memory, 1)\nmemory.close()\n"
        "import agentic_memory.memory_system as main\n"
        "assert sys.modules['litellm'] is litellm and main.completion == 'the real one'\n",
        tmp_path,
        PYTHONPATH=str(packages),
    )
    assert done.returncode == 0, done.stderr


def test_amem_is_imported_only_when_a_memory_is_opened(tmp_path: Path) -> None:
    done = run(
        "import memorydojo\nfrom memorydojo.adapter import load_adapter\n"
        "assert load_adapter('a-mem') is AMemAdapter\n"
        "AMemConfig()\n"
        "AMemAdapter.packages\n"
        "assert not {name.split('.')[0] for name in sys.modules} & {'agentic_memory', 'chromadb'}\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["_amem_parts", "_amem_setup", "_amem_prompt"])
def test_importing_any_module_of_the_adapter_first_is_safe(tmp_path: Path, module: str) -> None:
    done = run(f"import memorydojo.adapters.{module}\nm = opened('a')\nwrite(m, 1)\nm.close()\n", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    done = run("memory = opened('a')\nwrite(memory, 1)\nos.kill(os.getpid(), signal.SIGKILL)\n", tmp_path)
    assert done.returncode == -signal.SIGKILL
    memory = open_amem(tmp_path / "a")
    assert len(memory.snapshot().entries) == 1
    memory.close()
