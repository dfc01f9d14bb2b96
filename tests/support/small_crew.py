"""The children of a gateway of several processes, as their parent hears them."""

import asyncio
from typing import cast

import msgspec

from radixgate.gateway.processes.channel import Channel, parent_end
from radixgate.gateway.processes.crew import Crew
from radixgate.gateway.processes.messages import (
    Aborted,
    AskAbort,
    ExpectAbort,
    Hello,
    ToChild,
    ToParent,
    WorkerResult,
)

_decode = msgspec.msgpack.Decoder(ToChild).decode


class Child:
    """Its end of the channel: what it was told, and what it answers."""

    def __init__(self, crew: Crew, index: int) -> None:
        self.told: list[ToChild] = []
        self.channel: Channel[ToParent] = parent_end(crew.heard, crew.lost)
        self.channel.connection_made(cast(asyncio.Transport, self))
        self._crew = crew
        self.says(Hello(index))

    def says(self, message: ToParent) -> None:
        self._crew.heard(self.channel, message)

    def answers(self, held: int = 0, results: list[WorkerResult] | None = None) -> None:
        """The last question."""
        asked = self.told[-1]
        assert isinstance(asked, ExpectAbort | AskAbort)
        self.says(Aborted(asked.number, held, results or []))

    # ------------------------------------------------------------ as a transport

    def write(self, data: bytes) -> None:
        self.told.append(_decode(data[4:]))

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None: ...


def crew_of(count: int) -> tuple[Crew, list[Child]]:
    crew = Crew(
        welcome=lambda hand: None,
        on_news=lambda news: None,
        on_gone=lambda index: None,
        on_check_soon=lambda worker_id: None,
        on_standing=lambda standing: None,
        on_stored=lambda stored: None,
    )
    return crew, [Child(crew, index) for index in range(count)]
