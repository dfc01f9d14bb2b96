"""How many tokens of prompts a step may take so that those who decode hardly notice."""

from collections.abc import Sequence

from radixgate.worker.chunks import Chunk

# A new measurement counts for so much: the time a token takes drifts with contexts and batch.
_WEIGHT = 0.25


class PrefillPace:
    """Learns from measured steps what a decoding row costs and what a prompt token adds.

    With it a chunk is as large as an inter-token latency of `slo_s` allows. Until both costs have
    been measured, and where the SLO leaves no room, it is the least there is: a page.
    """

    def __init__(self, slo_s: float) -> None:
        self._slo_s = slo_s
        self._decode_s: float | None = None  # of a step that only decodes; None: none yet
        self._token_s: float | None = None  # that a prompt token adds; None: not measured yet

    def tokens(self) -> int:
        """Prompt tokens for a step in which somebody decodes."""
        if self._token_s is None:
            return 0
        room_s = self._slo_s - (self._decode_s or 0.0)
        return max(0, int(room_s / self._token_s))

    def stepped(self, chunks: Sequence[Chunk], seconds: float) -> None:
        """A step with these chunks took so long."""
        prefill = sum(chunk.count for chunk in chunks if chunk.prefill)
        decodes = any(not chunk.prefill for chunk in chunks)
        if not prefill:
            self._decode_s = _towards(self._decode_s, seconds)
            return
        own_s = seconds - (self._decode_s or 0.0) if decodes else seconds
        if own_s > 0.0:
            self._token_s = _towards(self._token_s, own_s / prefill)


def _towards(old: float | None, new: float) -> float:
    return new if old is None else old + _WEIGHT * (new - old)
