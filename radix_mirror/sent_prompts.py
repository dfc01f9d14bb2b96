"""Prompts that we sent: what of them their workers are about to hold, until it is over."""

from collections.abc import Sequence, Sized

from radixgate.radix_mirror.claimed_blocks import ClaimedBlocks
from radixgate.radix_mirror.claimed_pieces import ClaimedPieces
from radixgate.radix_mirror.claims import Claim, Claims
from radixgate.radix_mirror.piece import StoredBlocks
from radixgate.radix_mirror.pieces import Pieces


class SentPrompts:
    """Claims by whole pieces where a prompt has such, so that sending it costs its pieces.

    Which of their blocks the worker has stored, before or since, is looked for when it matters:
    before it loses one of them, `enter` claims those one by one that it has not stored until then.
    """

    def __init__(self, claims: Claims, pieces: Pieces, stored: StoredBlocks) -> None:
        """`stored`: what workers have on their device."""
        self._claims = claims
        self._pieces = pieces
        self._stored = stored
        self.claimed = ClaimedPieces(pieces.size)
        self._shortest = pieces.shortest
        self._whole: dict[int, set[Claim]] = {}  # by bit, those with pieces; none is empty
        self._listed: dict[int, ClaimedBlocks] = {}  # by bit, of some of those

    def __len__(self) -> int:
        """Claimed blocks, for whichever worker, and whoever claims them. O(blocks in pieces)."""
        lookup = self._claims.lookup
        whole = {
            block
            for claims in self._whole.values()
            for claim in claims
            for block in self._missing(claim)
            if not lookup(block, 0)
        }
        return len(self._claims) + len(whole)

    def count(self, bit: int) -> int:
        """Claimed blocks of one worker, whoever claims them. O(its blocks in pieces)."""
        lookup, claims = self._claims.lookup, self._whole.get(bit, ())
        missing = {block for claim in claims for block in self._missing(claim)}
        return self._claims.count(bit) + sum(not lookup(block, 0) & bit for block in missing)

    @property
    def entries(self) -> Sized:
        """Empty if no piece is claimed: to be asked without a Python frame."""
        return self.claimed.by_first

    @property
    def one_by_one(self) -> int:
        """Blocks that are in no claimed piece, or listed besides. O(workers that have some)."""
        return len(self._claims) + sum(map(len, self._listed.values()))

    @property
    def blocks_in_pieces(self) -> int:
        """Blocks of claimed pieces, whatever of them is stored. O(1)."""
        return self.claimed.blocks

    def send(self, bit: int, ids: Sequence[int], start: int) -> Claim:
        """The worker will hold this prompt, of which it has stored what is before the depth
        `start`. O(pieces), and O(blocks) of what makes no whole piece."""
        claims, size = self._claims, self.claimed.size
        if len(ids) < self._shortest:
            return claims.make(bit, self._stored.without(bit, ids[start:]), ids, start)
        held = self.claimed.hold(bit, ids, start)
        covered = start // size * size + len(held) * size
        if len(ids) - covered < size:
            rest = ids[max(start, covered) :]
        else:  # too many others are alike in one
            rest = self._uncovered(ids, start, {piece.start for piece in held})
        claim = claims.make(bit, self._stored.without(bit, rest), ids, start)
        if held:
            claim.pieces = held
            self._whole.setdefault(bit, set()).add(claim)
        return claim

    def wait(self, bit: int, ids: Sequence[int]) -> Claim:
        """The worker tells of a prompt that waits, from some depth on. O(pieces) if it is one that
        we sent, else O(blocks)."""
        for claim in self._whole.get(bit, ()):
            sent, start = claim.ids, len(claim.ids) - len(ids)
            if start == claim.start and sent[-1] == ids[-1] and sent[start:] == ids:
                return self.send(bit, sent, start)
        return self._claims.make(bit, self._stored.without(bit, ids))

    def release(self, claim: Claim) -> None:
        """Withdraw a claim; what others claim stays. Twice is harmless. O(pieces + runs)."""
        if claim.pieces:
            self._forget(claim)
            if not claim.runs:  # else who holds its blocks has changed anyway
                self._pieces.touch_from(claim.bit, claim.ids, claim.start or 0)
        self._claims.release(claim)

    def lose(self, bit: int, ids: Sequence[int]) -> None:
        """The worker is about to lose these blocks; if it has any of them in a piece, `enter`.

        O(blocks, and those of prompts that were sent since the last time), O(1) if none were.
        """
        claims = self._whole.get(bit)
        if claims is None:
            return
        listed = self._listed.get(bit)
        if listed is None:
            listed = self._listed[bit] = ClaimedBlocks()
        if listed.have_any(ids, claims, self.claimed.size):
            self.enter(bit)

    def enter(self, bit: int) -> None:
        """What the worker has not stored by now is claimed block by block from now on: it is about
        to lose some, or has them elsewhere. O(its blocks in pieces), O(1) if there are none."""
        before: Claim | None = None
        for claim in list(self._whole.get(bit, ())):
            # One prompt is mostly claimed twice: as sent and as waiting.
            if before is None or (claim.ids, claim.start) != (before.ids, before.start):
                missing = self._missing(claim)
            self._claims.extend(claim, missing)
            before = claim
        for claim in list(self._whole.get(bit, ())):
            self._forget(claim)

    def purge(self, bit: int) -> None:
        """Forget the worker. Its claims may still be released, which then does nothing."""
        for claim in list(self._whole.get(bit, ())):
            self._forget(claim)
        self._claims.purge(bit)

    def check(self) -> None:
        """Assert that claims and pieces agree. O(claimed blocks)."""
        self.claimed.check()
        held = 0
        for bit, claims in self._whole.items():
            assert claims, "nobody has pieces"
            for claim in claims:
                assert claim.bit == bit
                assert claim.pieces
                held += len(claim.pieces)
                for piece in claim.pieces:
                    assert piece.mask & bit
                    assert piece.last == claim.ids[piece.start + self.claimed.size - 1]
        assert held == self.claimed.claims()
        assert self._listed.keys() <= self._whole.keys()

    def _missing(self, claim: Claim) -> Sequence[int]:
        """What its worker has not stored of its pieces."""
        size, start, held = self.claimed.size, claim.start or 0, claim.pieces
        end = held[-1].start + size
        if end - held[0].start == len(held) * size:  # without a gap
            return self._pieces.missing(claim.bit, self._stored, claim.ids[:end], start)
        missing: list[int] = []
        for piece in held:
            part = claim.ids[max(piece.start, start) : piece.start + size]
            missing += self._stored.without(claim.bit, part)
        return missing

    def _uncovered(self, ids: Sequence[int], start: int, held: set[int]) -> Sequence[int]:
        """The blocks of a prompt, from a depth on, that are in none of the pieces which begin at
        the depths `held`."""
        size = self.claimed.size
        rest: list[int] = []
        for at in range(start - start % size, len(ids), size):
            if at not in held:
                rest += ids[max(at, start) : at + size]
        return rest

    def _forget(self, claim: Claim) -> None:
        """Its pieces, not its blocks."""
        self.claimed.drop(claim.bit, claim.pieces)
        claim.pieces = ()
        own = self._whole[claim.bit]
        own.remove(claim)
        if not own:
            del self._whole[claim.bit]
            self._listed.pop(claim.bit, None)
