"""What one sequence computes in a step."""

from dataclasses import dataclass

from radixgate.worker.requests.sequence import PageCopy, Phase, TokenSequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next tokens of one sequence to go through the model: `count` from `start` on."""

    sequence: TokenSequence
    start: int
    count: int
    prefill: bool
    samples: bool  # the last token's logits are wanted
    visit: int  # how often the sequence had been retracted
    # Positions of the prompt whose tokens are scored; the row before each has the logits.
    scored: range = range(0)
    copy: PageCopy | None = None  # to be done before

    @property
    def end(self) -> int:
        return self.start + self.count

    @property
    def holds(self) -> bool:
        """False: its sequence has ended or lost its pages since, and what comes of it is void."""
        sequence = self.sequence
        return sequence.phase is Phase.RUNNING and sequence.retractions == self.visit


def plan_chunk(
    sequence: TokenSequence, count: int, *, prefill: bool, samples: bool, scored: range = range(0)
) -> Chunk:
    """The next `count` tokens of the sequence; a token to be drawn is paid for at once."""
    start, visit, copy = sequence.planned, sequence.retractions, sequence.copy
    sequence.copy = None
    sequence.planned += count
    sequence.drawing += samples
    sequence.request.credit -= samples
    return Chunk(sequence, start, count, prefill, samples, visit, scored, copy)
