"""A conversation in bytes, as of foreign workers, has one beginning however long it grows."""

import random

from books import MODEL, Books, identity
from radixgate.fleet.ask import Ask
from radixgate.fleet.fleet import WorkerState
from radixgate.fleet.identity import MirrorKey
from radixgate.policies.prefix_hash import PrefixHash, PrefixHashConfig
from radixgate.proto.blocks import BYTES_A_TOKEN, byte_chain, root_id

TEXT = MirrorKey(MODEL, "bytes", 0)


def test_prefix_hash_keeps_it_at_one_worker_from_5_kb_to_200() -> None:
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
