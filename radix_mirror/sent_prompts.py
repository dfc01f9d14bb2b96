"""Prompts that we sent: what of them their workers are about to hold, until it is over."""

from collections.abc import Sequence, Sized
from itertools import repeat

from radixgate.radix_mirror.claimed_pieces import ClaimedPieces
from radixgate.radix_mirror.claims import Claim, Claims
from radixgate.radix_mirror.piece import StoredBlocks
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.whole_claims import WholeClaims


class SentPrompts:
    """Claims by whole pieces where a prompt has such, so that sending it costs its pieces.

    They are over once the worker has stored all of the prompt. Which of their blocks it has stored
    before is looked for when it matters: before it loses one of them, `enter` claims those one by
    one that it has not stored until then.
    """

    def __init__(self, claims: Claims, pieces: Pieces, stored: StoredBlocks) -> None:
        """`stored`: what workers have on their device."""
        self._claims = claims
        self._pieces = pieces
        self._stored = stored
        self.claimed = ClaimedPieces(pieces.size)
        self._shortest = pieces.shortest
        self._whole: dict[int, WholeClaims] = {}  # by bit, those with pieces; none is empty
        self._listed = 0  # blocks that those have listed

    def __len__(self) -> int:
        """Claimed blocks, for whichever worker, and whoever claims them; of a claimed piece all,
        until its prompt is stored. One that is in pieces alike, or claimed in a piece and one by
        one, counts for each. O(1)."""
        return len(self._claims) + self.claimed.blocks

    def count(self, bit: int) -> int:
        """The same of one worker. O(1)."""
        return self._claims.count(bit) + self.claimed.count(bit)

    @property
    def entries(self) -> Sized:
        """Empty if no piece is claimed: to be asked without a Python frame."""
        return self.claimed.by_first

    @property
    def one_by_one(self) -> int:
        """Blocks that are in no claimed piece, or listed besides. O(1)."""
        return len(self._claims) + self._listed

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
        own = self._whole.get(bit)
        if own is not None:
            ids = own.known(ids)
        held = self.claimed.hold(bit, ids, start)
        # Mostly the very one: two arrays that are equal are compared to their ends.
        if held and (known := held[-1].prompt) is not ids and known == ids:
            ids = known  # as another worker's claim has it
        covered = start // size * size + len(held) * size
        if len(ids) - covered < size:
            rest = ids[max(start, covered) :]
        else:  # too many others are alike in one
            rest = self._uncovered(ids, start, {piece.start for piece in held})
        claim = claims.make(bit, self._stored.without(bit, rest), ids, start)
        if held:
            claim.pieces = held
            if own is None:
                own = self._whole[bit] = WholeClaims(size)
            own.add(claim)
        return claim

    def wait(self, bit: int, ids: Sequence[int]) -> Claim:
        """The worker tells of a prompt that waits, from some depth on. O(pieces) if it is one that
        we sent, else O(blocks); and O(claims of that prompt)."""
        own = self._whole.get(bit)
        for claim in own.ending_with(ids[-1]) if own is not None and ids else ():
            sent, start = claim.ids, len(claim.ids) - len(ids)
            if start == claim.start and sent[start:] == ids:
                return self.send(bit, sent, start)
        return self._claims.make(bit, self._stored.without(bit, ids))

    def confirm(self, bit: int, ids: Sequence[int]) -> None:
        """The worker has stored these blocks, which the table knows: they are claimed no more.

        O(ids), and O(blocks) of a prompt of which it has stored all now.
        """
        self._claims.confirm(bit, ids)
        own = self._whole.get(bit)
        if own is None:
            return
        for last in own.ends(ids):
            self._end_if_stored(list(own.ending_with(last)), ids)

    def release(self, claim: Claim) -> None:
        """Withdraw a claim; what others claim stays. Twice is harmless. O(pieces + runs)."""
        if claim.pieces:
            self._forget(claim)
            if not claim.runs:  # else who holds its blocks has changed anyway
                self._pieces.touch_from(claim.bit, claim.ids, claim.start or 0)
        self._claims.release(claim)

    def lose(self, bit: int, ids: Sequence[int]) -> None:
        """The worker is about to lose these blocks; if it has any of them in a piece, `enter`.

        O(blocks, and those of prompts that were sent since the last time and are not over), O(1)
        if all are over.
        """
        own = self._whole.get(bit)
        if own is None:
            return
        before = own.listed
        entered = own.have_any(ids)
        self._listed += own.listed - before
        if entered:
            self.enter(bit)

    def enter(self, bit: int) -> None:
        """What the worker has not stored by now is claimed block by block from now on: it is about
        to lose some, or has them elsewhere. O(its blocks in pieces), O(1) if there are none."""
        own = self._whole.get(bit)
        if own is None:
            return
        # One prompt is mostly claimed twice, as sent and as waiting, and mostly in the same pieces:
        # in others if prompts that are alike in one have come or gone between.
        found: dict[tuple[int, ...], Sequence[int]] = {}
        before: int | None = None
        for claim in own.by_prompt():
            if claim.ids[-1] != before:
                found.clear()
            before = claim.ids[-1]
            places = (claim.start or 0, *(piece.start for piece in claim.pieces))
            missing = found.get(places)
            if missing is None:
                missing = found[places] = self._missing(claim)
            self._claims.extend(claim, missing)
        self._forget_all(bit)

    def purge(self, bit: int) -> None:
        """Forget the worker. Its claims may still be released, which then does nothing."""
        self._forget_all(bit)
        self._claims.purge(bit)

    def check(self) -> None:
        """Assert that claims and pieces agree. O(claimed blocks)."""
        self.claimed.check()
        held = 0
        for bit, own in self._whole.items():
            own.check()
            for claim in own.by_prompt():
                assert claim.bit == bit
                assert claim.pieces
                held += len(claim.pieces)
                for piece in claim.pieces:
                    assert piece.mask & bit
                    assert piece.last == claim.ids[piece.start + self.claimed.size - 1]
        assert held == self.claimed.claims()
        assert self._listed == sum(own.listed for own in self._whole.values())

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

    def _end_if_stored(self, alike: Sequence[Claim], ids: Sequence[int]) -> None:
        """Claims of one prompt are over if the worker, which has stored `ids`, has all of it."""
        bit, prompt = alike[0].bit, alike[0].ids
        start, end = min(claim.start or 0 for claim in alike), len(prompt)
        told = min(end - start, len(ids))
        if prompt[-told:] == ids[-told:]:
            end -= told
        masks = set(map(self._stored.lookup, prompt[start:end], repeat(0)))
        if not all(mask & bit for mask in masks):
            return
        for claim in alike:
            self._forget(claim)
            claim.ids = ()
        self._pieces.touch_from(bit, prompt, start)  # nobody leans on a claim any more

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
        own = self._whole[claim.bit]
        own.remove(claim)
        if not own:
            self._listed -= own.listed
            del self._whole[claim.bit]
        self.claimed.drop(claim.bit, claim.pieces)
        claim.pieces = ()

    def _forget_all(self, bit: int) -> None:
        """The pieces of all its claims."""
        own = self._whole.get(bit)
        for claim in own.by_prompt() if own else ():
            self._forget(claim)
