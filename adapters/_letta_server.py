"""A Letta server of one's own: started on a free port of loopback, gone with the process that started it.

Letta 0.16.8 needs a virtual environment of its own (its packages contradict this one's) and PostgreSQL with pgvector,
which a wheel brings along. The database is made once; every start works on a copy that goes with the server, because
the memories themselves are kept in their own directories.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from memorydojo.adapters._server import Child, free_port, tail, wait_until
from memorydojo.errors import MemorySystemError

VERSION = "0.16.8"
HOME_VARIABLE = "MEMORYDOJO_LETTA_HOME"
REQUIREMENTS = Path(__file__).with_name("letta-server.txt")

SYSTEM = "letta"
_ACCOUNT = "nobody"
USER = "letta"
DATABASE = "letta"
_START_SECONDS = 300.0


@dataclass(frozen=True)
class Address:
    """Where a server that ``memorydojo letta up`` started is found.

    Attributes:
        url: Its address.
        password: Its password.
        pid: The process that holds it.
        log: Its log.
    """

    url: str
    password: str
    pid: int
    log: str


def home() -> Path:
    """Where the server is set up: ``MEMORYDOJO_LETTA_HOME``, else a folder of this user's (or the machine's, for root).

    PostgreSQL does not run as root, so what root sets up must be within reach of another account.
    """
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if _is_root():
        return Path("/var/lib/memorydojo/letta")
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "memorydojo" / "letta"


def running(place: Path | None = None) -> Address | None:
    """The server that was started there, or None."""
    folder = place or home()
    try:
        # The lock, not the number of the process, tells whether it lives: numbers are given out again.
        with (folder / "server.lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        pass
    except OSError:
        return None
    try:
        return Address(**json.loads((folder / "server.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def is_set_up(place: Path) -> bool:
    """Whether the server is set up there, with the packages of this version of MemoryDojo."""
    try:
        return (place / "ready").read_text(encoding="utf-8") == REQUIREMENTS.read_text(encoding="utf-8")
    except OSError:
        return False


class LettaServer:
    """A running server: PostgreSQL and Letta, both gone when this process ends.

    Args:
        place: Where it was set up.
        log: The file for the output of both; in the server's own folder if it is not given.

    Raises:
        MemorySystemError: It does not start.
    """

    def __init__(self, place: Path, *, log: Path | None = None) -> None:
        self.password = secrets.token_urlsafe(24)
        self._children: list[Child] = []
        self._folder = _own_folder(place)
        self.log = log or self._folder / "letta.log"
        try:
            with failing("start", f"See the log {self.log}."):
                self.url = self._start(place)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def running(self) -> bool:
        """Whether both processes run."""
        return all(child.running for child in self._children)

    def close(self) -> None:
        """Stops both and removes what they worked on. May be called more than once."""
        while self._children:
            self._children.pop().stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, place: Path) -> str:
        data = self._folder / "database"
        shutil.copytree(place / "database", data, symlinks=True)
        own(data)
        postgres, uri = start_postgres(place, data, self.log)
        self._children.append(postgres)
        port = free_port()
        env = {
            **environment(self._folder, uri),
            "LETTA_SERVER_SECURE": "true",
            "LETTA_SERVER_PASSWORD": self.password,
        }
        command = [str(bin_folder(place) / "letta"), "server", "--host", "127.0.0.1", "--port", str(port)]
        letta = Child(command, log=self.log, env=env, cwd=self._folder)
        self._children.append(letta)
        url = f"http://127.0.0.1:{port}"
        if not wait_until(lambda: _healthy(url), children=self._children, seconds=_START_SECONDS):
            raise MemorySystemError(SYSTEM, "start", f"Letta did not start:\n{tail(self.log)}", f"See {self.log}.")
        return url


def start_postgres(place: Path, data: Path, log: Path) -> tuple[Child, str]:
    """PostgreSQL on a database folder; gives the process and the address for Letta."""
    password = (place / "database-password").read_text(encoding="utf-8")
    port = free_port()
    options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200"}
    # Nothing here has to survive a crash of the machine: a start copies the database anew.
    options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    command = [str(postgres_folder(place) / "postgres"), "-D", str(data), "-p", str(port)]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    child = Child(command, log=log, env=bare_environment(), cwd=data, user=account(), stop_signal=signal.SIGINT)

    def ready() -> bool:
        probe = [str(postgres_folder(place) / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        return subprocess.run(probe, check=False, env=bare_environment()).returncode == 0  # noqa: S603 - fixed

    if not wait_until(ready, children=[child], seconds=60):
        child.stop()
        raise MemorySystemError(SYSTEM, "start", f"PostgreSQL did not start:\n{tail(log)}", f"See {log}.")
    return child, f"postgresql://{USER}:{password}@127.0.0.1:{port}/{DATABASE}"


def serve(place: Path, *, on_ready: Callable[[Address], None], stop: Callable[[], bool]) -> None:
    """Runs a server until ``stop`` says so or it ends by itself, and announces it in ``server.json``."""
    announced, log = place / "server.json", place / "server.log"
    with (place / "server.lock").open("w") as lock, LettaServer(place, log=_emptied(log)) as server:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = Address(server.url, server.password, os.getpid(), str(log))
        announced.touch(mode=0o600)
        announced.chmod(0o600)
        announced.write_text(json.dumps(asdict(address)), encoding="utf-8")
        try:
            on_ready(address)
            while not stop():
                if not server.running:
                    raise MemorySystemError(SYSTEM, "run", f"the server ended:\n{tail(log)}", f"See {log}.")
                time.sleep(0.2)
        finally:
            announced.unlink(missing_ok=True)


def _emptied(log: Path) -> Path:
    log.unlink(missing_ok=True)
    return log


def environment(folder: Path, uri: str, *, tls_parameter: bool = True) -> dict[str, str]:
    """Letta's whole environment: nothing of the user's reaches it, above all no key."""
    return {
        **bare_environment(),
        "HOME": str(folder),
        "LETTA_DIR": str(folder / ".letta"),
        "LETTA_PG_URI": uri + ("?sslmode=disable" if tls_parameter else ""),
        # Its default opens a new connection for every statement: several times slower, and it fails under load.
        "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
        # With the pool it asks before every use of a connection whether that lives; the database is its own and local.
        "LETTA_POOL_PRE_PING": "false",
        "LETTA_DISABLE_TRACING": "true",
        "LETTA_TRACK_PROVIDER_TRACE": "false",
        "OPENAI_API_KEY": "none",
        # Its models answer on loopback without TLS, and it loads all authorities anew for every call of a model.
        "SSL_CERT_DIR": str(folder / "no-authorities"),
    }


def bare_environment() -> dict[str, str]:
    """What every program needs, and nothing else of the user's."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _healthy(url: str) -> bool:
    try:
        with _opener().open(f"{url}/v1/health/", timeout=5) as response:
            return bool(json.load(response).get("version") == VERSION)
    except (OSError, ValueError):
        return False


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy


def bin_folder(place: Path) -> Path:
    """The programs of the server's virtual environment."""
    return place / "venv" / "bin"


def postgres_folder(place: Path) -> Path:
    """The programs of PostgreSQL."""
    (found,) = (place / "venv" / "lib").glob("python*/site-packages/pgserver/pginstall/bin")
    return found


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def account() -> str | None:
    """The account for PostgreSQL, which refuses to run as root."""
    return _ACCOUNT if _is_root() else None


def own(path: Path) -> None:
    """Gives a path and all below it to PostgreSQL's account."""
    owner = account()
    if owner is not None:
        for each in (path, *path.rglob("*")):
            shutil.chown(each, user=owner)


def _own_folder(place: Path) -> Path:
    running_ = place / "running"
    running_.mkdir(exist_ok=True)
    for left in running_.iterdir():  # of servers whose process was killed
        if not _alive(left.name.partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=running_))
    folder.chmod(0o711)
    return folder


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def failing(call: str, remedy: str) -> Iterator[None]:
    """Reports failures of files and programs as `MemorySystemError`."""
    try:
        yield
    except (OSError, ValueError, tarfile.TarError, subprocess.SubprocessError) as error:
        raise MemorySystemError(SYSTEM, call, f"{type(error).__name__}: {error}", remedy) from error
