"""A Dask cluster on loopback: a scheduler here and worker processes, each with a working directory of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def cluster(
    place: Path, *, workers: int = 2, threads: int = 1, environment: dict[str, str] | None = None
) -> Iterator[tuple[Any, list["subprocess.Popen[bytes]"]]]:
    """A client and the worker processes, which are gone afterwards.

    Args:
        place: Where the working directories are made.
        workers: How many processes.
        threads: Threads of each.
        environment: Their environment; this process's own if None.
    """
    import distributed

    typed: Any = distributed  # it has types, but not for these
    started: list[subprocess.Popen[bytes]] = []
    with typed.LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address=None, scheduler_kwargs={"dashboard": False}, silence_logs=50
    ) as scheduler:
        try:
            for number in range(workers):
                directory = place / f"worker-{number}"
                directory.mkdir(parents=True)
                command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address]
                options = f"--nthreads {threads} --no-nanny --no-dashboard --host 127.0.0.1 --death-timeout 60".split()
                log = (directory / "log").open("wb")
                with log:
                    started.append(
                        subprocess.Popen(
                            [*command, *options, "--local-directory", str(directory)],
                            cwd=directory,
                            env=environment,
                            stdout=log,
                            stderr=log,
                        )
                    )
            with typed.Client(scheduler) as client:
                client.wait_for_workers(workers, timeout=120)
                yield client, started
        finally:
            for process in started:
                process.kill()
                process.wait()
