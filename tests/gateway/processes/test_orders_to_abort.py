"""An order to abort is given when every process knows of it, and not before."""

import asyncio
from typing import cast

import msgspec
import pytest

from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.processes.channel import Channel, parent_end
from radixgate.gateway.processes.crew import Crew
from radixgate.gateway.processes.messages import (
    Aborted,
    AbortOver,
    Admitted,
    AskAbort,
    ExpectAbort,
    Hello,
    PeerGone,
    ToChild,
    ToParent,
    WorkerResult,
)
from until import until

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


async def test_all_expect_it_before_one_gives_it_and_until_all_have() -> None:
    crew, (one, other) = crew_of(2)
    order = asyncio.create_task(crew.abort(AbortOrder(None)))
    await until(lambda: bool(other.told))
    expect = ExpectAbort(1, 1, None, False)
    assert (one.told, other.told) == ([expect], [expect])
    one.answers(held=3)
    await asyncio.sleep(0)
    assert (len(one.told), len(other.told)) == (1, 1), "the other has not marked what it runs"
    other.answers(held=1)
    await until(lambda: len(other.told) == 2)
    ask = AskAbort(2, None, False)
    assert (one.told[1:], other.told[1:]) == ([ask], [ask])
    said = WorkerResult("w", True, "", None)
    one.answers(results=[said])
    other.answers()
    which, answers = await order
    assert sum(answer.held for answer in answers) == 4
    assert [answer.results for answer in answers if answer.results] == [[said]]
    crew.abort_over(which, ["w"])
    assert (one.told[2:], other.told[2:]) == ([AbortOver(1, ["w"])],) * 2


async def test_one_that_ends_meanwhile_is_not_waited_for() -> None:
    crew, (one, other) = crew_of(2)
    order = asyncio.create_task(crew.abort(AbortOrder("mine", prefix=True)))
    await until(lambda: bool(one.told))
    one.answers()
    crew.lost(other.channel)
    await until(lambda: isinstance(one.told[-1], AskAbort))
    assert PeerGone(1) in one.told
    one.answers()
    which, answers = await order
    assert (which, len(answers)) == (1, 2)


@pytest.mark.parametrize(("given", "taken"), [(False, []), (True, ["w"])])
async def test_one_whose_asker_leaves_is_over(given: bool, taken: list[str]) -> None:
    """`given`: it has gone out, and nobody knows whether the worker took it."""
    crew, (one,) = crew_of(1)
    one.says(Admitted("w", 1))
    order = asyncio.create_task(crew.abort(AbortOrder(None)))
    await until(lambda: bool(one.told))
    if given:
        one.answers()
        await until(lambda: isinstance(one.told[-1], AskAbort))
    order.cancel()
    with pytest.raises(asyncio.CancelledError):
        await order
    assert one.told[-1] == AbortOver(1, taken)
