"""Prompts of foreign workers beyond 16 KB, where a block holds four times as much."""

import random

from books import MODEL, Books, identity
from radixgate.fleet.ask import Ask
from radixgate.fleet.fleet import Outcome, WorkerState
from radixgate.fleet.identity import MirrorKey
from radixgate.policies.prefix_hash import PrefixHash, PrefixHashConfig
from radixgate.proto.blocks import BYTES_A_TOKEN, byte_chain, root_id

TEXT = MirrorKey(MODEL, "bytes", 0)


class Spoken:
    """One foreign worker."""

    def __init__(self) -> None:
        self.books = Books()
        self.books.fleet.admit(identity("a", key=TEXT, reports_kv=False))
        self.books.fleet.set_state("a", WorkerState.READY)

    def answer(self, text: bytes, cached_tokens: int) -> None:
        self.books.clock.advance(1.0)
        ids = byte_chain(root_id(MODEL), text)
        lease = self.books.fleet.lease(Ask(MODEL, len(text) // BYTES_A_TOKEN, {TEXT: ids}))
        lease.first_output()
        lease.close(Outcome.OK, cached_tokens)

    def depth(self, text: bytes) -> int:
        return self.books.fleet.mirror_of("a").depths(byte_chain(root_id(MODEL), text)).get("a", 0)


def test_a_reply_that_confirms_a_long_beginning_forgets_nothing() -> None:
    spoken, draw = Spoken(), random.Random(1)
    other, system, question = (draw.randbytes(size) for size in (8_192, 20_480, 180_000))
    spoken.answer(other, 0)
    spoken.answer(system, 0)
    spoken.answer(system + question, len(system) // BYTES_A_TOKEN)
    assert spoken.depth(other) == 32


def test_prefix_hash_keeps_a_conversation_at_one_worker_from_5_kb_to_200() -> None:
    books = Books(policy=PrefixHash(PrefixHashConfig(), random.Random(1)))
    for number in range(8):
        name = f"w{number}"
        books.fleet.admit(identity(name, key=TEXT, reports_kv=False))
        books.fleet.set_state(name, WorkerState.READY)
    said = random.Random(1).randbytes(200_000)
    homes = set()
    for size in (5_000, 16_000, 20_000, 32_000, 64_000, 128_000, 200_000):
        ids = byte_chain(root_id(MODEL), said[:size])
        told = books.fleet.rehearse(Ask(MODEL, size // BYTES_A_TOKEN, {TEXT: ids}))
        homes.add(told.candidates.ids[told.choice.index])
    assert len(homes) == 1
