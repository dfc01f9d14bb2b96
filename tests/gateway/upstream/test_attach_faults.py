"""Faults of ours in one answer, which must not break the stream that all answers share."""

import pytest

from attached_worker import AttachedWorker
from items import item
from radixgate.errors import InternalFault, RadixgateError
from radixgate.gateway.upstream.attach import Receiver
from radixgate.proto.generated import worker_pb2 as pb


class Keeping:
    """A receiver that keeps what comes, unless it is to raise."""

    def __init__(self, *, raises: bool) -> None:
        self._raises = raises
        self.heard: list[str] = []

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if self._raises:
            raise ZeroDivisionError(what)

    def on_item(self, item: pb.Item) -> None:
        self._hear("item")

    def on_token(self, token_id: int, text: str) -> None:
        self._hear("token")

    def on_flowed(self) -> None:
        self._hear("flowed")

    def on_refused(self, refused: pb.Refused) -> None:
        self._hear("refused")

    def on_lost(self, error: RadixgateError) -> None:
        assert isinstance(error, InternalFault) == (len(self.heard) > 0)
        self._hear("lost")


def submitted(worker: AttachedWorker, *receivers: Receiver) -> list[int]:
    return worker.stream.submit([pb.Submit(input_ids=bytes(4)) for _ in receivers], receivers)


@pytest.mark.parametrize("columns", [False, True])
async def test_who_raises_when_told_of_its_fault_is_alone_with_it(columns: bool) -> None:
    async with AttachedWorker() as worker:
        bad, good = Keeping(raises=True), Keeping(raises=False)
        first, second = submitted(worker, bad, good)
        await worker.send(
            item(ids=[7], handle=first), item(ids=[8], handle=second), columns=columns
        )
        what = "token" if columns else "item"
        assert (bad.heard, good.heard) == ([what, "lost"], [what])
        assert (worker.stream.in_flight, worker.connections) == (1, 1)


async def test_who_raises_when_refused_or_told_so_leaves_the_others_their_outputs() -> None:
    async with AttachedWorker() as worker:
        bad, good = Keeping(raises=True), Keeping(raises=False)
        first, second = submitted(worker, bad, good)
        await worker.send(item(ids=[8], handle=second), refused=pb.Refused(handle=first))
        assert (bad.heard, good.heard) == (["refused", "lost"], ["item"])


async def test_all_are_told_of_a_break_though_one_raises() -> None:
    async with AttachedWorker() as worker:
        bad, good = Keeping(raises=True), Keeping(raises=False)
        submitted(worker, bad, good)
        await worker.die()
        assert (bad.heard, good.heard) == (["lost"], ["lost"])
