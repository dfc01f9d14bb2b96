"""A mirror of texts: one block per character, for cases that are told in characters."""

from array import array

from clocks import FakeClock
from radixgate.proto.blocks import chain, root_id
from radixgate.radix_mirror.mirror import MirrorConfig, Placement, RadixMirror

ROOT = root_id("text")


def ids_of(text: str) -> "array[int]":
    """Chained ids of the text's code points."""
    return chain(ROOT, array("I", map(ord, text)), 1)


class TextMirror:
    """Workers without events, to which texts are sent; a worker is added when first named."""

    def __init__(self, config: MirrorConfig | None = None) -> None:
        self.clock = FakeClock()
        self.mirror = RadixMirror(self.clock, config)

    def add(self, worker: str, capacity: int | None = None) -> None:
        self.mirror.add_worker(worker, reports_kv=False, capacity_blocks=capacity)

    def insert(self, text: str, worker: str) -> Placement:
        if self.mirror.incarnation(worker) is None:
            self.add(worker)
        placement = self.mirror.expect(worker, ids_of(text), keep_s=0)
        assert placement is not None
        return placement

    def depths(self, text: str) -> dict[str, int]:
        return self.mirror.depths(ids_of(text))

    def match(self, text: str) -> tuple[set[str], int]:
        """The workers that hold the longest prefix of the text, and its length."""
        depths = self.depths(text)
        longest = max(depths.values(), default=0)
        return {worker for worker in depths if depths[worker] == longest}, longest

    def ratio(self, text: str) -> float:
        return self.match(text)[1] / len(text) if text else 0.0

    def size(self, worker: str) -> int:
        return self.mirror.blocks_of(worker).approximate
