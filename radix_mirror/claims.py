"""Blocks that a worker is about to hold: prompts sent or queued, until their KV is reported."""

from collections import Counter
from collections.abc import Sequence, Sized
from itertools import repeat

import msgspec

from radixgate.radix_mirror.claimed_pieces import ClaimedPiece
from radixgate.radix_mirror.pieces import Pieces

# Structs, as they are made for every request: a dataclass costs twice as much.


class Claim(msgspec.Struct, eq=False):
    """One prompt's blocks on one worker, counted until released."""

    bit: int
    serial: int
    ids: Sequence[int]  # of the prompt; empty once released
    start: int | None  # `ids` begin with a prompt's first block, and are claimed from here on
    runs: "set[_Run]"  # of its blocks, those that it still claims
    pieces: Sequence[ClaimedPiece] = ()  # that it claims whole besides, in the prompt's order


class _Run(msgspec.Struct, eq=False):
    """Blocks that have always been claimed together, so that they are counted once; never empty."""

    ids: Sequence[int]
    mask: int  # the workers for which it is claimed
    claims: dict[int, set[Claim]]  # by bit; none is empty


class Claims:
    """Which live claims stand behind each block of each worker.

    A block that the worker reports as stored is no claim any more, whoever claimed it. Blocks are
    counted by runs: a prompt's new blocks are one until another prompt, or a report, parts them.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._run_of: dict[int, _Run] = {}  # by block
        self._counts: dict[int, int] = {}  # bit -> claimed blocks; none of zero
        self._serial = 0

    def __len__(self) -> int:
        """Claimed blocks, for whichever worker."""
        return len(self._run_of)

    def count(self, bit: int) -> int:
        """Claimed blocks of one worker."""
        return self._counts.get(bit, 0)

    @property
    def entries(self) -> Sized:
        """As that of `BlockMasks`."""
        return self._run_of

    def lookup(self, block: int, default: int) -> int:
        """The mask of workers for which it is claimed."""
        run = self._run_of.get(block)
        return run.mask if run else default

    def make(
        self, bit: int, missing: Sequence[int], prompt: Sequence[int] = (), start: int | None = None
    ) -> Claim:
        """Count the missing blocks for the worker at once. O(new blocks), 40 ns each.

        `prompt`: the whole one, of which nothing before the depth `start` is missing. `start` None:
        it is not known where in a prompt the blocks lie, and `prompt` is not looked at.
        """
        self._serial += 1
        claim = Claim(bit, self._serial, missing if start is None else prompt, start, set())
        self.extend(claim, missing)
        if start is None:
            self._pieces.touch(bit, missing)
        else:
            self._pieces.touch_from(bit, prompt, start)
        return claim

    def extend(self, claim: Claim, missing: Sequence[int]) -> None:
        """The claim counts these blocks, too, which its worker was taken to hold before."""
        if not self._run_of or self._run_of.keys().isdisjoint(missing):
            self._begin(claim, missing)
        else:
            self._join(claim, missing)

    def release(self, claim: Claim) -> None:
        """Withdraw a claim; what others claim stays. Twice is harmless. O(runs + blocks that
        nobody claims any more)."""
        bit = claim.bit
        for run in claim.runs:
            own = run.claims[bit]
            own.discard(claim)
            if not own:
                self._leave(run, bit)
        if claim.runs:
            claim.runs.clear()
            self._touch(claim)
        claim.ids = ()

    def confirm(self, bit: int, ids: Sequence[int]) -> None:
        """The worker stores these blocks: nothing of them is a claim any more.

        Who holds them is the same as before, which is told by who enters the report.
        """
        run_of = self._run_of
        if bit not in self._counts or run_of.keys().isdisjoint(ids):
            return
        at, end = 0, len(ids)
        while at < end:
            run = run_of.get(ids[at])
            if run is None or not run.mask & bit:
                at += 1
                continue
            run = self._cut_out(run, ids, at)
            at += len(run.ids)
            for claim in run.claims[bit]:
                claim.runs.discard(run)
            self._leave(run, bit)

    def purge(self, bit: int) -> None:
        """Forget the worker. Its claims may still be released, which then does nothing."""
        if bit not in self._counts:
            return
        for run in set(self._run_of.values()):
            if run.mask & bit:
                for claim in run.claims[bit]:
                    claim.runs.discard(run)
                self._leave(run, bit)

    def check(self) -> None:
        """Assert that runs are whole, and masks, claims and counts agree. O(claimed blocks)."""
        counts: Counter[int] = Counter()
        runs = set(self._run_of.values())
        assert sum(len(run.ids) for run in runs) == len(self._run_of)
        for run in runs:
            assert run.ids, "a run is empty"
            assert all(self._run_of[block] is run for block in run.ids)
            assert run.mask == sum(run.claims), "mask and claims differ"
            for bit, claims in run.claims.items():
                counts[bit] += len(run.ids)
                assert claims, "claimed by nobody"
                for claim in claims:
                    assert claim.bit == bit
                    assert claim.ids, "released, and counted still"
                    assert run in claim.runs
        assert counts == self._counts

    def _begin(self, claim: Claim, ids: Sequence[int]) -> None:
        """A run of blocks that nobody claims yet."""
        if not ids:
            return
        run_of, bit = self._run_of, claim.bit
        run, others = _Run(ids, bit, {bit: {claim}}), len(run_of)
        run_of.update(zip(ids, repeat(run), strict=False))
        new = len(run_of) - others
        if new < len(ids):  # a report may name one twice
            run.ids = list(dict.fromkeys(ids))
        self._counts[bit] = self._counts.get(bit, 0) + new
        claim.runs.add(run)

    def _join(self, claim: Claim, ids: Sequence[int]) -> None:
        """Some are claimed by others: they part the blocks into runs."""
        run_of = self._run_of
        at, end = 0, len(ids)
        while at < end:
            run = run_of.get(ids[at])
            if run is None:
                start = at
                while at < end and ids[at] not in run_of:
                    at += 1
                self._begin(claim, ids[start:at])
                continue
            run = self._cut_out(run, ids, at)
            at += len(run.ids)
            self._enter(claim, run)

    def _enter(self, claim: Claim, run: _Run) -> None:
        bit = claim.bit
        if run.mask & bit:
            run.claims[bit].add(claim)
        else:
            run.mask |= bit
            run.claims[bit] = {claim}
            self._counts[bit] = self._counts.get(bit, 0) + len(run.ids)
        claim.runs.add(run)

    def _leave(self, run: _Run, bit: int) -> None:
        """No claim of this worker is left on it."""
        del run.claims[bit]
        run.mask ^= bit
        self._counts[bit] -= len(run.ids)
        if not self._counts[bit]:
            del self._counts[bit]
        if not run.mask:
            for block in run.ids:
                del self._run_of[block]

    def _cut_out(self, run: _Run, ids: Sequence[int], at: int) -> _Run:
        """Of a run the part that stands in `ids` from `at` on, as a run of its own."""
        if run.ids[0] != ids[at]:
            _, run = self._part(run, run.ids.index(ids[at]))
        length, left = len(run.ids), len(ids) - at
        if length <= left and list(ids[at : at + length]) == list(run.ids):
            return run
        pairs = enumerate(zip(run.ids, ids[at:], strict=False))
        same = next((n for n, (own, other) in pairs if own != other), left)
        return self._part(run, same)[0]

    def _part(self, run: _Run, length: int) -> tuple[_Run, _Run]:
        """Its first blocks, and the rest. The shorter part becomes a run of its own."""
        front, rest = run.ids[:length], run.ids[length:]
        short, run.ids = (front, rest) if len(front) < len(rest) else (rest, front)
        other = _Run(short, run.mask, {bit: set(claims) for bit, claims in run.claims.items()})
        self._run_of.update(zip(short, repeat(other), strict=False))
        for claims in other.claims.values():
            for claim in claims:
                claim.runs.add(other)
        return (other, run) if short is front else (run, other)

    def _touch(self, claim: Claim) -> None:
        """Who holds its blocks has changed."""
        if claim.start is None:
            self._pieces.touch(claim.bit, claim.ids)
        else:
            self._pieces.touch_from(claim.bit, claim.ids, claim.start)
