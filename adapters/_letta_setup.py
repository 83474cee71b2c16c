"""Setting up a Letta server of one's own, once: its packages, its migrations and its empty database."""

import contextlib
import fcntl
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from memorydojo.adapters._letta_server import (
    DATABASE,
    HOME_VARIABLE,
    REQUIREMENTS,
    SYSTEM,
    USER,
    VERSION,
    account,
    bare_environment,
    bin_folder,
    environment,
    failing,
    is_set_up,
    own,
    postgres_folder,
    start_postgres,
)
from memorydojo.adapters._server import tail
from memorydojo.adapters._state import replace_text
from memorydojo.errors import MemorySystemError

Say = Callable[[str], None]


def set_up(place: Path, say: Say) -> None:
    """Installs the server and makes its database, unless that is done.

    Raises:
        MemorySystemError: It could not be done; what was done is done again next time.
    """
    if is_set_up(place):
        return
    with failing("set-up", "Solve the cause and run the command again."):
        place.mkdir(parents=True, exist_ok=True)
        _check_within_reach(place)
        with _alone(place):
            _set_up(place, say)


def _set_up(place: Path, say: Say) -> None:
    if is_set_up(place):  # by another process, while this one waited
        return
    for name in ("venv", "source", "database", "database-password", "setup.log", "ready"):
        _remove(place / name)
    say(f"setting up the Letta server {VERSION} in {place} (once; about two minutes and 900 MB)")
    say("  packages")
    _install(place)
    say("  database")
    _fetch_migrations(place)
    _make_database(place)
    replace_text(place / "ready", REQUIREMENTS.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Keeps a second set-up of the same place waiting."""
    with (place / "set-up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(place: Path) -> None:
    venv = place / "venv"
    _run([sys.executable, "-m", "venv", str(venv)], log=place / "setup.log")
    uv = shutil.which("uv") or shutil.which(str(Path(sys.executable).with_name("uv")))
    python = str(bin_folder(place) / "python")
    # The list is complete, so nothing is resolved: a plain pip of 2023 fails in that on these packages.
    pip = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    _run([*pip, "--no-deps", "-r", str(REQUIREMENTS)], log=place / "setup.log")


def _fetch_migrations(place: Path) -> None:
    """The wheel has no migrations; they are in the source distribution."""
    python = str(bin_folder(place) / "python")
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "pip", "download", "--no-deps", "--no-binary", "letta", "-d", folder]
        _run([*command, f"letta=={VERSION}"], log=place / "setup.log")
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            root = f"letta-{VERSION}"
            wanted = [m for m in tar.getmembers() if m.name.startswith((f"{root}/alembic/", f"{root}/alembic.ini"))]
            tar.extractall(folder, wanted, filter="data")
        shutil.copytree(Path(folder) / root, place / "source", dirs_exist_ok=True)


def _make_database(place: Path) -> None:
    data, log, postgres = place / "database", place / "setup.log", postgres_folder(place)
    password = secrets.token_urlsafe(24)
    secret = place / "database-password"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "password"
        given.write_text(password, encoding="utf-8")
        Path(folder).chmod(0o755)
        own(given)
        data.mkdir(mode=0o700)
        own(data)
        command = [str(postgres / "initdb"), "-D", str(data), "-U", USER, f"--pwfile={given}"]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        _run(command, log=log, env=bare_environment(), user=account())
    child, uri = start_postgres(place, data, log)
    try:
        env = {**bare_environment(), "PGPASSWORD": password}
        port = str(urlsplit(uri).port)
        for database, statement in (
            ("postgres", f"CREATE DATABASE {DATABASE}"),
            (DATABASE, "CREATE EXTENSION vector"),
        ):
            psql = [str(postgres / "psql"), "-q", "-h", "127.0.0.1", "-p", port, "-U", USER, "-d", database]
            _run([*psql, "-c", statement], log=log, env=env)
        with tempfile.TemporaryDirectory() as folder:
            env = environment(Path(folder), uri, tls_parameter=False)
            _run([str(bin_folder(place) / "alembic"), "upgrade", "head"], log=log, env=env, cwd=place / "source")
    finally:
        child.stop()


def _run(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: str | None = None,
) -> None:
    """Runs a command of the set-up with its output in the log.

    Raises:
        MemorySystemError: It failed.
    """
    who = {"user": user, "extra_groups": ()} if user else {}
    with log.open("ab") as output:
        done = subprocess.run(  # type: ignore[call-overload]  # noqa: S603 - fixed commands, no shell
            command, check=False, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=cwd, **who
        )
    if done.returncode != 0:
        name = " ".join([Path(command[0]).name, *(part for part in command[1:3] if "://" not in part)])
        raise MemorySystemError(SYSTEM, "set-up", f"{name} failed:\n{tail(log)}", f"See {log}.")


def _check_within_reach(place: Path) -> None:
    """Root's PostgreSQL runs as another account, which must be able to get there.

    Raises:
        MemorySystemError: It cannot.
    """
    if account() is None:
        return
    closed = [path for path in (place, *place.parents) if not path.stat().st_mode & 0o001]
    if closed:
        raise MemorySystemError(
            SYSTEM,
            "set-up",
            f"PostgreSQL does not run as root, and other accounts cannot enter {closed[-1]}",
            f"Set {HOME_VARIABLE} to a folder that every account may enter.",
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
