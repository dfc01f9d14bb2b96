"""How many tokens of prompts a step may take, and where chunks may end."""

from collections.abc import Callable, Sequence

from radixgate.worker.schedule.chunks import Chunk
from radixgate.worker.schedule.prefill_pace import LEAST_CHUNK, PrefillPace
from radixgate.worker.settings.engine_config import EngineConfig


class PromptBudget:
    """What the settings allow and, where a latency is to be kept, what measured steps allow."""

    def __init__(self, config: EngineConfig, pace: PrefillPace | None) -> None:
        """`pace` of prompts beside those who decode; None: as fast as the settings allow."""
        self._page_size = config.page_size
        self._chunk = config.chunked_prefill_size
        self._max_prefill = config.max_prefill_tokens
        self._pace = pace
        self.whole = config.chunked_prefill_size < 0  # prompts are not cut
        # Whoever runs out of budget stops at a multiple of so many tokens, and nobody begins with
        # less than the least: a page, but that may be too much for a latency to be kept.
        page = config.page_size
        self.grain, self.least = (page, page) if pace is None else (1, LEAST_CHUNK)

    def tokens(self, decode_rows: int, next_start: Callable[[], int]) -> int:
        """For a step in which so many decode; `next_start`: where the first chunk will begin."""
        if self.whole:
            return self._max_prefill
        # However many decode, prompts go on by a page a step.
        budget = max(self._page_size, self._chunk - decode_rows)
        if self._pace is not None and decode_rows:
            budget = min(budget, self._pace.tokens(next_start()))
        return min(self._max_prefill, budget)

    def took(self, chunks: Sequence[Chunk], seconds: float) -> None:
        """The step with these chunks took so long."""
        if self._pace is None:
            return
        prefill = [(chunk.start, chunk.count) for chunk in chunks if chunk.prefill]
        self._pace.stepped(prefill, seconds, decodes=len(prefill) < len(chunks))
