"""How much room the running outputs will need, guessed from how outputs end in practice."""

from collections.abc import Collection

from radixgate.worker.requests.sequence import TokenSequence

# SGLang's rule and numbers. Outputs mostly end before their limit, so a share of what they may
# still produce is kept free. The share falls while all goes well and rises after a retraction.
_FIRST_SHARE = 0.7
_LOWEST_OF_FIRST = 0.14
_DECAY_STEPS = 600
_LONGEST_GUESS = 4096  # tokens: nobody's limit of 100k may block the pool
_AFTER_RETRACTION = 20  # tokens more a sequence than it has produced so far


class DecodeReserve:
    """The share of their remaining output that running sequences are expected to need."""

    def __init__(self, conservativeness: float) -> None:
        self._first = min(1.0, _FIRST_SHARE * conservativeness)
        self._lowest = self._first * _LOWEST_OF_FIRST
        self._decay = (self._first - self._lowest) / _DECAY_STEPS
        self.share = self._first

    def tokens(self, sequence: TokenSequence) -> int:
        """What this sequence is expected to need beyond the pages it has."""
        remaining = sequence.request.max_len - len(sequence.ids)
        return int(min(remaining, _LONGEST_GUESS) * self.share)

    def step_went_well(self) -> None:
        self.share = max(self._lowest, self.share - self._decay)

    def retracted(self, running: Collection[TokenSequence]) -> None:
        """Pages ran out: set the share to what the running outputs have shown so far."""
        if self._first == 0.0:
            return
        produced = sum(sequence.output_len for sequence in running)
        allowed = sum(
            min(sequence.request.max_len - sequence.request.prompt_tokens, _LONGEST_GUESS)
            for sequence in running
        )
        shown = (produced + _AFTER_RETRACTION * len(running)) / (allowed + 1)
        self.share = min(1.0, max(self.share, shown))
