"""Seconds from the start of a fleet to its first answer, by model; the second start counts.

    python benchmarks/start_times.py --models toy smollm2

The first start of each model converts it (and compiles what is compiled), so it is not counted.
"""

import argparse
import asyncio
import time

import aiohttp

from radixgate.household import Household
from radixgate.up_config import UpConfig


async def first_answer_s(model: str) -> float:
    """A gateway and two workers from nothing to the whole answer of one chat."""
    started = time.monotonic()
    household = Household(UpConfig(model_path=model, port=0), say=lambda line: None)
    try:
        await household.start()
        body = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{household.url}/v1/chat/completions", json=body) as answer,
        ):
            assert answer.status == 200, await answer.text()
            await answer.read()
        return time.monotonic() - started
    finally:
        await household.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["toy", "smollm2"])
    for model in parser.parse_args().models:
        first = asyncio.run(first_answer_s(model))
        second = asyncio.run(first_answer_s(model))
        print(f"{model}: first start {first:.1f} s, second start {second:.1f} s")


if __name__ == "__main__":
    main()
