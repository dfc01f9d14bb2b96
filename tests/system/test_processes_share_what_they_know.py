"""Two processes route by what both have sent: a conversation is followed whichever it comes to.

Workers that report nothing are the hard case: what one process knows of them, only it can tell.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from gateway_processes import Processes, processes
from raw_client import ask, request
from scripted_worker import ScriptedWorker
from small_gateway import CHAT

pytestmark = pytest.mark.slow

WORKERS = 4
CONVERSATIONS = 25
TURNS = 5


def turn(conversation: int, number: int) -> dict[str, object]:
    """A long beginning of its own, and one further question each turn."""
    texts = [f"conversation {conversation} " * 100]
    texts += [f"question {at} of {conversation} " * 20 for at in range(number)]
    return {"model": "toy", "messages": [{"role": "user", "content": text} for text in texts]}


async def share_of_turns_at_home(served: Processes, workers: Mapping[str, ScriptedWorker]) -> float:
    """Of the turns after the first, those that went where the one before had gone."""
    homes: dict[int, str] = {}
    followed = 0
    for number in range(TURNS):
        for conversation in range(CONVERSATIONS):
            # A connection of its own: the kernel deals them out among the processes.
            answer = await served.post(CHAT, turn(conversation, number))
            assert answer.status == 200
            home = answer.header("x-radixgate-worker")
            assert home is not None
            followed += homes.get(conversation) == home
            homes[conversation] = home
        # An order that is in force everywhere when it is answered, and all news before it: so that
        # no process is behind, however busy the machine is.
        body = {"state": "ready"}
        order = request(f"/workers/{next(iter(workers))}", body, method="PUT")
        assert (await ask(served.port, order)).status == 200
    return followed / ((TURNS - 1) * CONVERSATIONS)


async def measured(count: int) -> float:
    async with AsyncExitStack() as stack:
        started = [await stack.enter_async_context(ScriptedWorker()) for _ in range(WORKERS)]
        workers = {worker.url.removeprefix("http://"): worker for worker in started}
        urls = [worker.url for worker in started]
        served = await stack.enter_async_context(
            processes("--seed", "5", "--worker-urls", *urls, count=count)
        )
        await served.ready(WORKERS)
        share = await share_of_turns_at_home(served, workers)
        assert all(worker.requests for worker in started), "every worker is used"
        return share


async def test_two_processes_follow_conversations_as_one_does() -> None:
    one, two = await measured(1), await measured(2)
    assert one >= 0.98
    assert abs(two - one) <= 0.02
