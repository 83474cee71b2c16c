"""What the gateway costs: chat calls through it against direct calls to the same endpoint, 32 at a time.

The endpoint and the client are processes of their own; the endpoint answers after 50 ms. Direct and gateway rounds
alternate in this run, with the same client. The figures are the best round of each, in calls a second.
"""

import argparse
import asyncio
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import httpx
from _upstream import endpoint  # type: ignore[import-not-found]

from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.models.gateway import Gateway

LATENCY = 0.05
CONCURRENT = 32
BODY = {"model": "m", "messages": [{"role": "user", "content": "word " * 500}], "temperature": 0.0}


async def _round(url: str, secret: str, calls: int) -> tuple[float, float]:
    """Seconds of the whole round, and mean seconds of a call."""
    limits = httpx.Limits(max_connections=CONCURRENT)
    took: list[float] = []
    async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
        left = iter(range(calls))

        async def worker() -> None:
            for _ in left:
                start = time.perf_counter()
                answer = await client.post(
                    f"{url}/chat/completions", json=BODY, headers={"Authorization": f"Bearer {secret}"}
                )
                answer.raise_for_status()
                took.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(CONCURRENT)))
        return time.perf_counter() - start, sum(took) / len(took)


def _measure(url: str, secret: str, calls: int) -> tuple[float, float]:
    return asyncio.run(_round(url, secret, calls))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=640, help="calls of a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with endpoint(LATENCY) as url, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as client:

        def measure(base_url: str, secret: str, calls: int) -> tuple[float, float]:
            return client.submit(_measure, base_url, secret, calls).result()

        backend = Backend(base_url=url, key_env="", limits=Limits(concurrency=CONCURRENT))
        gateway = Gateway(Models(backends={"b": backend}, models={"m": Model(backend="b")}))
        through = gateway.url(run="benchmark", role="agent")
        measure(url, "x", CONCURRENT)
        measure(through, gateway.secret, CONCURRENT)
        direct, ours = [], []
        for _ in range(options.rounds):
            direct.append(measure(url, "x", options.calls))
            ours.append(measure(through, gateway.secret, options.calls))
        gateway.close()
    best_direct, best_ours = min(direct), min(ours)
    overhead = (best_ours[1] - best_direct[1]) * 1000
    sys.stdout.write(
        f"mean call: direct {best_direct[1] * 1000:.1f} ms, through the gateway {best_ours[1] * 1000:.1f} ms\n"
    )
    sys.stdout.write(f"overhead: {overhead:.1f} ms a call at {CONCURRENT} concurrent calls\n")
    result = {
        "name": "gateway",
        "unit": "calls/s",
        "ours": round(options.calls / best_ours[0], 1),
        "baseline": round(options.calls / best_direct[0], 1),
        "ratio": round(best_direct[0] / best_ours[0], 3),
        "baseline_is": f"direct calls to the same {LATENCY * 1000:.0f} ms endpoint, {CONCURRENT} at a time",
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
