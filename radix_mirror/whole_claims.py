"""The claims of one worker that have whole pieces, for who comes with some of their blocks."""

from collections.abc import Collection, Iterable, Sequence

from radixgate.radix_mirror.claims import Claim

# Blocks of claims that are over stay listed until they are as many as the others, and so many more.
_SPARE = 4_096


class WholeClaims:
    """In order of coming, and by last block: as an id names its whole prefix, claims that end with
    the same block are of one prompt."""

    def __init__(self, size: int) -> None:
        """`size`: the blocks of a piece."""
        self._size = size
        self._claims: dict[Claim, None] = {}
        self._alike: dict[int, dict[Claim, None]] = {}  # by last block; none is empty
        self._pieces = 0  # that these claims have, each as often as it is claimed
        self._listed: set[int] = set()  # blocks of pieces, never too few of what was listed
        self._listed_to = 0  # serial of the last claim whose blocks are listed

    def __len__(self) -> int:
        """Claims."""
        return len(self._claims)

    @property
    def listed(self) -> int:
        """Blocks that are listed."""
        return len(self._listed)

    def add(self, claim: Claim) -> None:
        """O(1)."""
        self._claims[claim] = None
        self._alike.setdefault(claim.ids[-1], {})[claim] = None
        self._pieces += len(claim.pieces)

    def remove(self, claim: Claim) -> None:
        """One that was added, and has its pieces and ids still. O(1)."""
        del self._claims[claim]
        alike = self._alike[claim.ids[-1]]
        del alike[claim]
        if not alike:
            del self._alike[claim.ids[-1]]
        self._pieces -= len(claim.pieces)

    def by_prompt(self) -> Sequence[Claim]:
        """All of them, those of one prompt together, in order of coming. O(claims)."""
        return [claim for alike in self._alike.values() for claim in alike]

    def ending_with(self, last: int) -> Collection[Claim]:
        """Those of one prompt, in order of coming, as they are now. O(1)."""
        return self._alike.get(last, {}).keys()

    def known(self, prompt: Sequence[int]) -> Sequence[int]:
        """The same prompt as another claim has it, so that it is kept once; or as it is. O(1), and
        a comparison if there is such a claim."""
        for claim in self.ending_with(prompt[-1]):
            return claim.ids if claim.ids == prompt else prompt
        return prompt

    def ends(self, ids: Iterable[int]) -> Sequence[int]:
        """Which of these blocks are the last ones of claims, each once. O(ids), 20 ns each."""
        return list(dict.fromkeys(filter(self._alike.__contains__, ids)))

    def have_any(self, ids: Iterable[int]) -> bool:
        """Whether any of these blocks is in their pieces; of claims that are over it may be, too.

        O(ids, and blocks of pieces that have come since the last time).
        """
        self._list_new()
        return not self._listed.isdisjoint(ids)

    def check(self) -> None:
        """Assert that they are the same both ways, and all are listed that should be. O(blocks)."""
        assert self._claims, "an empty one is not kept"
        assert self._pieces == sum(len(claim.pieces) for claim in self._claims)
        assert sum(map(len, self._alike.values())) == len(self._claims)
        for last, alike in self._alike.items():
            assert alike, "no claim ends there"
            for claim in alike:
                assert claim in self._claims
                assert claim.ids[-1] == last
        for claim in self._claims:
            for piece in claim.pieces:
                if claim.serial <= self._listed_to:
                    assert piece.listed & claim.bit
                    assert self._listed.issuperset(piece.blocks(self._size))

    def _list_new(self) -> None:
        new: list[Claim] = []
        for claim in reversed(self._claims):
            if claim.serial <= self._listed_to:
                break
            new.append(claim)
        if not new:
            return
        self._listed_to = new[0].serial
        if len(self._listed) > 2 * self._size * self._pieces + _SPARE:
            for claim in self._claims:
                for piece in claim.pieces:
                    piece.listed &= ~claim.bit
            self._listed, new = set(), list(self._claims)
        for claim in new:
            for piece in claim.pieces:
                if not piece.listed & claim.bit:
                    piece.listed |= claim.bit
                    self._listed.update(piece.blocks(self._size))
