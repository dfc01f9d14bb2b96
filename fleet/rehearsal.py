"""What a lease would be, without one: the choice, and what it would rest on."""

from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.policies.base import Candidates, Choice


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One request before the fleet as it is. All sequences are columns of the candidates."""

    model: str
    candidates: Candidates
    cached_tokens: Sequence[int]  # of the prompt, as the policy sees them
    confirmed_tokens: Sequence[int]  # of those, what the worker has reported as stored
    predicted_ttft_s: Sequence[float]
    choice: Choice
    scores: Sequence[float]  # the policy's, lower is better

    @property
    def worker_id(self) -> str:
        """Who would be chosen."""
        return self.candidates.ids[self.choice.index]
