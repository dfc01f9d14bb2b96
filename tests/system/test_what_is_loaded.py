"""A gateway loads gRPC and a tokenizer library when the first worker of ours comes, not before."""

from pathlib import Path

import pytest

from gateway_processes import Processes, processes
from live_fleet import empty_fleet
from scripted_worker import ScriptedWorker

pytestmark = pytest.mark.slow

LIBRARIES = ("cygrpc", "tokenizers")


def loaded(gateway: Processes) -> list[list[str]]:
    """Of each of its processes, those of the libraries that are mapped into it."""
    pids = [gateway.process.pid, *gateway.children()]
    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in pids]
    return [[name for name in LIBRARIES if name in text] for text in maps]


@pytest.mark.parametrize("count", [1, 2])
async def test_a_worker_of_ours_that_comes_later_brings_what_it_needs(count: int) -> None:
    async with (
        empty_fleet() as fleet,
        ScriptedWorker() as foreign,
        processes("--worker-urls", foreign.url, count=count) as gateway,
    ):
        await gateway.ready(1)
        assert (await gateway.chat("hello")).status == 200
        nothing: list[list[str]] = [[]] * (1 if count == 1 else 1 + count)
        assert loaded(gateway) == nothing

        own = await fleet.add_worker()
        added = await gateway.post("/workers", {"url": f"grpc://{own.grpc}"})
        assert added.status in (200, 201, 202), added.body
        await gateway.ready(2)
        body = {"model": "toy", "prompt": "hi", "max_tokens": 2, "ignore_eos": True}
        answer = await gateway.post("/v1/completions", body)
        assert answer.json["usage"]["completion_tokens"] == 2
        assert loaded(gateway) == [list(LIBRARIES)] * len(nothing)
