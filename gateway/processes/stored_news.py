"""How the processes of one gateway come to know of the same stored responses, by their parent."""

import asyncio
from collections.abc import Callable

from radixgate.gateway.asking.stored_responses import StoredResponse, StoredResponses
from radixgate.gateway.processes.channel import Channel
from radixgate.gateway.processes.messages import AllStored, AskStored, ResponsesStored, ToChild

# A parent that is slower than this is not waited for: the worker says what it does not have.
CATCH_UP_S = 2.0


class StoredNews:
    """One child's: tells the parent at once, and asks it when a request names what is not known.

    Questions under way are bounded by the requests that ask them.
    """

    def __init__(self, stored: StoredResponses, channel: Channel[ToChild]) -> None:
        self._stored = stored
        self._channel = channel
        self._asked = 0
        self._waiting: dict[int, Callable[[], None]] = {}
        stored.on_kept = self._tell
        stored.catch_up = self._catch_up

    def hear(self, message: ResponsesStored | AllStored) -> None:
        """From the parent."""
        match message:
            case ResponsesStored():
                for response in message.responses:
                    self._stored.hear(response)
            case AllStored():
                self._waiting.get(message.number, lambda: None)()

    def _tell(self, response: StoredResponse) -> None:
        if self._channel.flows:
            self._channel.send(ResponsesStored([response]))

    async def _catch_up(self) -> None:
        """About a millisecond; at most CATCH_UP_S."""
        self._asked += 1
        number, told = self._asked, asyncio.Event()
        self._waiting[number] = told.set
        self._channel.send(AskStored(number))
        # No `asyncio.timeout`, which wants a task: a request's first step is taken in none.
        late = asyncio.get_running_loop().call_later(CATCH_UP_S, told.set)
        try:
            await told.wait()
        finally:
            late.cancel()
            del self._waiting[number]
