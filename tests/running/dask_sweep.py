"""A sweep on two Dask workers, as a program: one worker is killed while it runs. Run by ``test_dask.py``."""

import os
import sys
import time
from pathlib import Path
from threading import Thread

import memorydojo as md
from benchmarks._dask_cluster import cluster
from tests.running.test_sharing import plans


def main(place: Path) -> None:
    os.chdir(place)
    directory = place / "shared"
    with cluster(place / "workers") as (client, workers):

        def kill_one() -> None:
            while not list(directory.glob("memories-in-use/*/*")):
                time.sleep(0.001)
            workers[0].kill()

        Thread(target=kill_one, daemon=True).start()
        executor = client.get_executor(pure=False)
        # The path is relative: the workers are in other directories.
        runs = md.sweep(plans("vector"), directory="shared", executor=executor, progress=False)
        workers[0].wait()
        sys.stdout.write(f"{len(runs)} runs, killed with {workers[0].returncode}\n")
        left = [path.name for at in (place / "workers").iterdir() for path in at.iterdir()]
        sys.stdout.write(f"{sorted(set(left))}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
