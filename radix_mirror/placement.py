"""A prompt that was sent to a worker, and what becomes of its blocks when it ends."""

from typing import Protocol

import msgspec

from radixgate.radix_mirror.approximate import ApproximateBlocks, Visit
from radixgate.radix_mirror.claims import Claim
from radixgate.radix_mirror.sent_prompts import SentPrompts

# Structs, as they are made for every request: a frozen dataclass costs five times as much.


class Stay(Protocol):
    """A prompt's blocks on its worker. Every verb may be called twice."""

    def withdraw(self) -> None:
        """The prompt was not computed: what only it stood for leaves."""
        ...

    def answered(self) -> None:
        """The worker sent its first output."""
        ...

    def settle(self, cached_blocks: int | None) -> None:
        """The prompt was computed; so many blocks were there before. None: nobody told."""
        ...


class Placement(msgspec.Struct, frozen=True, eq=False):
    """One prompt sent to one worker. Made by `expect`, ended by `withdraw` or `settle`."""

    worker_id: str
    stay: Stay


class Claimed(msgspec.Struct, frozen=True, eq=False):
    """On a worker with events: what it reports ends the claim, or its time."""

    sent: SentPrompts
    claim: Claim

    def withdraw(self) -> None:
        self.sent.release(self.claim)

    def answered(self) -> None:
        """Nothing to do: the worker reports what it stores."""

    def settle(self, cached_blocks: int | None) -> None:
        """Nothing to do: the worker reports what it stores."""


class Visiting(msgspec.Struct, frozen=True, eq=False):
    """On a worker without events: what is believed of it is corrected by its replies."""

    approximate: ApproximateBlocks
    visit: Visit

    def withdraw(self) -> None:
        self.approximate.withdraw(self.visit)

    def answered(self) -> None:
        self.visit.answered = True

    def settle(self, cached_blocks: int | None) -> None:
        self.visit.answered = True
        self.approximate.settle(self.visit, cached_blocks)
