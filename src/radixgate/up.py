"""`radixgate up`: a household from the first ready line to the last drain."""

import asyncio
import contextlib
import random
import signal
import sys
from collections.abc import Callable, Iterator

from radixgate.clock import SystemClock
from radixgate.errors import ConfigError, ProcessFailed
from radixgate.free_address import check_free
from radixgate.household import Household
from radixgate.policies.registry import SLO_POLICY, make_policy
from radixgate.up_config import UpConfig

_TO_TRY = """
Try, in another terminal:

  curl -N {url}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{{"model": "{model}", "stream": true, "max_tokens": 64, "temperature": 0,
         "messages": [{{"role": "user", "content": "What is the capital of France?"}}]}}'
  curl {url}/workers
  {program} bench --base-url {url} --dataset-name generated-shared-prefix \\
    --gsp-num-groups 4 --gsp-prompts-per-group 4 --gsp-system-prompt-len 256 \\
    --gsp-question-len 32 --gsp-output-len 16 --max-concurrency 4

Ctrl-C ends it: the gateway finishes what it has, then the workers stop. A second one kills.
"""


def run_up(config: UpConfig) -> int:
    """Serve until Ctrl-C or SIGTERM (then 0), or until nothing is left to serve (then 1).

    Raises ConfigError for a policy or an address that the gateway would refuse once the workers are
    up.
    """
    make_policy(config.policy, SystemClock(), random.Random(0))
    if config.policy == SLO_POLICY:
        raise ConfigError(
            f"{SLO_POLICY} keeps --ttft-slo or --itl-slo, which `up` is not told: start the gateway"
            " by itself, with `radixgate gateway`"
        )
    check_free(config.host, config.port)
    return asyncio.run(serve(Household(config, say=_say), _say))


async def serve(household: Household, say: Callable[[str], None]) -> int:
    """Bring the household up, tell what to try, and take it down; the exit code of `run_up`."""
    with _signals(household.kill) as stopped:
        running = asyncio.create_task(_run(household, say))
        try:
            await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                say(f"{stopped.result()}: stopping the gateway, then the workers")
                return 0
            say(f"stopping: {await running}")
        except ProcessFailed as failed:
            # Its last lines were shown as they came.
            say(f"stopping: {failed.message.splitlines()[0]}")
        finally:
            running.cancel()
            await household.stop()
    return 1


async def _run(household: Household, say: Callable[[str], None]) -> str:
    await household.start()
    say(_TO_TRY.format(url=household.url, model=household.model, program=_program_name()))
    return await household.watch()


@contextlib.contextmanager
def _signals(on_second: Callable[[], None]) -> Iterator[asyncio.Future[str]]:
    """The name of the first SIGINT or SIGTERM; another one calls `on_second`."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[str] = loop.create_future()

    def take(number: signal.Signals) -> None:
        if first.done():
            on_second()
        else:
            first.set_result(number.name)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, take, number)
    try:
        yield first
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _program_name() -> str:
    """How the user called us, so that the command shown can be pasted."""
    return sys.argv[0] if sys.argv[0].endswith("radixgate") else "radixgate"


def _say(text: str) -> None:
    print(text, flush=True)
