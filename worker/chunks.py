"""What one sequence computes in a step."""

from dataclasses import dataclass

from radixgate.worker.sequence import PageCopy, TokenSequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next tokens of one sequence to go through the model: `count` from `start` on."""

    sequence: TokenSequence
    start: int
    count: int
    prefill: bool
    samples: bool  # the last token's logits are wanted
    # Positions of the prompt whose tokens are scored; the row before each has the logits.
    scored: range = range(0)
    copy: PageCopy | None = None  # to be done before

    @property
    def end(self) -> int:
        return self.start + self.count
