"""What a prompt takes a token, and how much longer for each other worker that is busy beside it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.least_squares import least_squares

# A share counts as told if one so far off fits worse by more than the times scatter: by a standard
# error of the share.
_SHARE_OFF = 0.2
# Of the sum of the squares: what is less is rounding.
_ROUNDING = 1e-12
# The search is over share / (1 + share), which has an end: first these, then around the best.
_MOST = 0.98
_PLACES = 32
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0
# Each leaves 0.62 of the width.
_NARROWINGS = 50


@dataclass(frozen=True, slots=True)
class LonePrompt:
    """A prompt computed with nobody else's of its worker."""

    seconds: float  # to its first token
    tokens: int
    neighbours: float  # other workers that were busy meanwhile, in the mean


@dataclass(frozen=True, slots=True)
class _Fit:
    """The best of one share: `(fixed_s + token_s x tokens) x (1 + share x neighbours)`."""

    share: float
    token_s: float
    squares: float  # of what is left of the times, summed up


def prompt_times(prompts: Sequence[LonePrompt]) -> tuple[float, float]:
    """Seconds a token, and the share that each neighbour adds to a prompt's time.

    For each share the best times are a linear fit, so that only the share is searched.
    O(80 x prompts). Raises ConfigError if the prompts do not tell the share.
    """
    best = _least(lambda place: _fit(prompts, place / (1.0 - place)))
    off = [best.share + _SHARE_OFF, *([best.share - _SHARE_OFF] if best.share > _SHARE_OFF else [])]
    scatter = best.squares * (1.0 + 1.0 / max(1, len(prompts) - 3))
    scatter += _ROUNDING * fsum(one.seconds**2 for one in prompts)
    if any(_fit(prompts, share).squares <= scatter for share in off):
        counts = [one.neighbours for one in prompts]
        raise ConfigError(
            f"--shared-cores: beside {len(prompts)} prompts {min(counts):.2f} to"
            f" {max(counts):.2f} other workers were busy, {fsum(counts) / len(counts):.2f} in the"
            f" mean: a share that is {_SHARE_OFF} off {best.share:.2f} fits as well, so that by"
            " how much workers slow each other down cannot be told; run the bench over several"
            " workers, with more prompts, and at a --request-rate at which some are computed"
            " beside others and some are not; or leave --shared-cores out"
        )
    return best.token_s, best.share


def token_time(prompts: Sequence[LonePrompt]) -> float:
    """Seconds a token, whatever was beside. O(prompts)."""
    return _fit(prompts, 0.0).token_s


def _fit(prompts: Sequence[LonePrompt], share: float) -> _Fit:
    slower = [1.0 + share * one.neighbours for one in prompts]
    # A constant, so that each request's cost (network, tokenizing) is not taken for prefill.
    rows = [(by, by * one.tokens) for by, one in zip(slower, prompts, strict=True)]
    fixed_s, token_s = least_squares(rows, [one.seconds for one in prompts])
    left = (
        one.seconds - fixed_s * fixed - token_s * tokens
        for one, (fixed, tokens) in zip(prompts, rows, strict=True)
    )
    return _Fit(share, token_s, fsum(late * late for late in left))


def _least(fit_at: Callable[[float], _Fit]) -> _Fit:
    """Of places from 0 to `_MOST`, the one of least squares."""
    step = _MOST / _PLACES
    tried = min(range(_PLACES + 1), key=lambda place: fit_at(place * step).squares)
    low, high = max(0.0, (tried - 1) * step), min(_MOST, (tried + 1) * step)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = fit_at(left), fit_at(right)
    for _ in range(_NARROWINGS):
        if at_left.squares <= at_right.squares:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = fit_at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = fit_at(right)
    # The ends themselves are never narrowed to: nothing added is one of them.
    return min((fit_at(low), fit_at((low + high) / 2)), key=lambda fit: fit.squares)
