"""A disk that is full or read-only: a clear error, nothing torn, and everything goes on once there is room."""

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.adapters.vector import VectorAdapter
from memorydojo.errors import SavedRunError
from memorydojo.runs import RunPlan


def plans() -> list[RunPlan]:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7, 8))
    trajectory = md.Trajectory(id="a", collection="test", sessions=sessions)
    attack = md.Attack(objective="banking", payload="seed-1", session="middle")
    return [md.plan_run(trajectory, "vector", attack=a) for a in (None, attack)]


def facts(runs: md.Runs) -> list[Any]:
    return [[s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions] for run in runs]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> md.Runs:
    return md.sweep(plans(), directory=tmp_path_factory.mktemp("whole"))


def _no_torn_file_is_read_as_whole(directory: Path, whole: md.Runs) -> None:
    """What is there of complete runs is what an undisturbed sweep has, and of others a beginning of it."""
    if not (directory / "manifest.json").exists():
        return
    for run in md.load_runs(directory):
        expected = facts(md.Runs([whole[run.id]]))[0]
        found = facts(md.Runs([run]))[0]
        assert found == (expected if run.complete else expected[: len(found)])
        assert "session" in md.Runs([run]).session_table().columns


# The calls that change something on disk. Each of them fails in turn, once the first so many have worked.
CALLS = ("write", "fsync", "replace", "rename", "mkdir", "open")


class FailingDisk:
    """Lets a number of changes to files below a directory through, and refuses all later ones until it is mended."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch, *, code: int) -> None:
        self.left: int | None = None
        self.changes = 0
        self.code = code
        self._directory = str(directory)
        for name in CALLS:
            patch.setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any, *args: Any, **kwargs: Any) -> Any:
            if self._counts(name, target, args):
                if self.left is not None and self.changes >= self.left:
                    raise OSError(self.code, os.strerror(self.code), str(target))
                self.changes += 1
            return real(target, *args, **kwargs)

        return call

    def _counts(self, name: str, target: Any, args: tuple[Any, ...]) -> bool:
        if isinstance(target, int):
            try:
                target = os.readlink(f"/proc/self/fd/{target}")
            except OSError:
                return False
        if name == "open" and not (args and isinstance(args[0], int) and args[0] & os.O_CREAT):
            return False
        return str(target).startswith(self._directory)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    return FailingDisk(tmp_path / "runs", monkeypatch, code=errno.ENOSPC)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_disk_that_is_full_at_any_change_loses_nothing(tmp_path: Path, broken: FailingDisk, whole: md.Runs) -> None:
    directory = tmp_path / "runs"
    said: list[str] = []
    for left in range(400):
        broken.changes, broken.left = 0, left
        try:
            md.sweep(plans(), directory=directory)
        except SavedRunError as error:
            said.append(str(error))
        else:
            break
        broken.left = None
        _no_torn_file_is_read_as_whole(directory, whole)
    assert facts(md.sweep(plans(), directory=directory)) == facts(whole)
    assert all(text.startswith("cannot write ") and "No space left on device. Make room" in text for text in said)
    assert all(any(name in text for text in said) for name in ("manifest.json", "sessions.jsonl", "end.json"))


def test_a_read_only_directory_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: md.Runs
) -> None:
    disk = FailingDisk(tmp_path / "runs", monkeypatch, code=errno.EROFS)
    md.sweep(plans()[:1], directory=tmp_path / "runs")
    disk.changes, disk.left = 0, 0
    with pytest.raises(SavedRunError, match=r"Read-only file system\. Make room or choose a directory"):
        md.sweep(plans(), directory=tmp_path / "runs")
    assert facts(md.load_runs(tmp_path / "runs")) == facts(whole[:1])


def test_a_directory_below_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SavedRunError, match=r"cannot write .*file/runs: Not a directory"):
        md.sweep(plans(), directory=tmp_path / "file" / "runs")


def _sqlite_full() -> Exception:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA max_page_count = 1")
    try:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    except sqlite3.OperationalError as error:
        return error
    finally:
        connection.close()
    raise AssertionError("the database took more than it has room for")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), _sqlite_full()])
def test_a_memory_that_finds_the_disk_full_does_not_count_as_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: md.Runs, error: Exception
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("the memory system hides what happened") from error

    with monkeypatch.context() as patch:
        patch.setattr(VectorAdapter, "write", full)
        with pytest.raises(SavedRunError, match="Make room"):
            md.sweep(plans(), directory=tmp_path)
    assert not any(run.complete for run in md.load_runs(tmp_path))
    assert facts(md.sweep(plans(), directory=tmp_path)) == facts(whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A real file system of so many kB, made larger when it is asked for again."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def resize(kilobytes: int) -> Path:
        nonlocal mounted
        options = f"size={kilobytes}k" + (",remount" if mounted else "")
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True)
        if made.returncode:
            pytest.skip("file systems cannot be mounted here")
        mounted = True
        return place

    yield resize
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("kilobytes", [4, 20, 52])
def test_a_sweep_on_a_small_disk_goes_on_once_there_is_room(
    small_disk: Callable[[int], Path], whole: md.Runs, kilobytes: int
) -> None:
    directory = small_disk(kilobytes) / "runs"
    with pytest.raises(SavedRunError, match=r"No space left on device|database or disk is full"):
        md.sweep(plans(), directory=directory)
    _no_torn_file_is_read_as_whole(directory, whole)
    small_disk(10_000)
    again = md.sweep(plans(), directory=directory)
    assert facts(again) == facts(whole)
    assert again.session_table().equals(whole.session_table())
