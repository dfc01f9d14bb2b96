"""Service levels: which workers would keep them, and what it is worth to choose one that does."""

from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError
from radixgate.policies.base import Candidates
from radixgate.policies.queued_tokens import queued_tokens

# What a prediction leaves out (a step under way, decoding beside it) takes about so much.
_PREDICTED_SHARE = 0.9
# Slow steps are old news by the time of the answer, and go with the prompts that others send.
_ITL_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class SloConfig:
    """The times that requests should keep. With one of them, `kv_cost` becomes `kv_cost_slo`."""

    ttft_slo: float | None = knob(
        None,
        unit="ms",
        help="as many requests as possible should have their first token within so long; with it "
        "the policy is kv_cost_slo; none: no such aim",
    )
    itl_slo: float | None = knob(
        None,
        unit="ms",
        help="and their further tokens each within so long of the one before; none: no such aim",
    )
    slo_miss_weight: float = knob(
        2.0,
        unit="s",
        help="kv_cost_slo: what a worker costs that would miss where another does not",
    )
    slo_late_share: float = knob(
        0.2,
        help="kv_cost_slo: share at which its own wait counts for a request that is late anywhere",
    )

    def __post_init__(self) -> None:
        check_finite(self)
        for name in ("ttft_slo", "itl_slo"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise ConfigError(f"{name} is {value:g} ms, it must be over 0")
        if not self.slo_miss_weight >= 0.0:
            raise ConfigError(f"slo_miss_weight is {self.slo_miss_weight:g}, it cannot be negative")
        if not 0.0 <= self.slo_late_share <= 1.0:
            raise ConfigError(f"slo_late_share is {self.slo_late_share:g}, a share is from 0 to 1")

    @property
    def aims_s(self) -> tuple[float | None, float | None]:
        """Seconds to the first token, and between tokens; None: no aim."""
        ttft, itl = self.ttft_slo, self.itl_slo
        return None if ttft is None else ttft / 1000.0, None if itl is None else itl / 1000.0

    @property
    def given(self) -> bool:
        """There is something to keep."""
        return self.ttft_slo is not None or self.itl_slo is not None


@dataclass(frozen=True, slots=True)
class Weighed:
    """Costs with the service levels in them."""

    costs: list[float]  # seconds, a candidate each
    late: bool  # nobody can bring the first token in time


class Slo:
    """Adds to what each candidate costs."""

    def __init__(self, config: SloConfig) -> None:
        self._ttft_s, self._itl_s = config.aims_s
        self._miss_s = config.slo_miss_weight
        self._late_share = config.slo_late_share

    def weigh(
        self,
        costs: list[float],
        prompt_tokens: int,
        candidates: Candidates,
        cached: Sequence[int],
        speeds: Sequence[float],
    ) -> Weighed:
        """O(candidates).

        A worker that would miss costs `slo_miss_weight` more than one that would not. Where all
        would, the request is late anyway: its own wait counts for a share only, so that it goes
        where it takes the least from others, which is where it is warm.
        """
        late = False
        if self._ttft_s is not None:
            waits = [
                tokens / speed
                for tokens, speed in zip(queued_tokens(candidates), speeds, strict=True)
            ]
            limit = self._ttft_s * _PREDICTED_SHARE
            keeps = [
                wait + max(1, prompt_tokens - tokens) / speed <= limit
                for wait, tokens, speed in zip(waits, cached, speeds, strict=True)
            ]
            late = not any(keeps)
            if late:
                unfelt = 1.0 - self._late_share
                costs = [cost - unfelt * wait for cost, wait in zip(costs, waits, strict=True)]
            else:
                costs = _dearer(costs, keeps, self._miss_s)
        if self._itl_s is not None:
            keeps = self._itl_kept(candidates, self._itl_s)
            if any(keeps):
                costs = _dearer(costs, keeps, _ITL_SHARE * self._miss_s)
        return Weighed(costs, late)

    def _itl_kept(self, candidates: Candidates, limit_s: float) -> list[bool]:
        """Of each, whether its last decode steps did; who has not told does."""
        steps = candidates.read_decode_step_s() or [None] * len(candidates)
        return [step is None or step <= limit_s for step in steps]


def _dearer(costs: Sequence[float], keeps: Sequence[bool], by_s: float) -> list[float]:
    return [cost if kept else cost + by_s for cost, kept in zip(costs, keeps, strict=True)]
