"""Independent prompts of random words or ids: nothing is shared, so no cache can help."""

import random

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.prompts import IdsPrompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import sentence

# Lower ids are special tokens, control bytes or padding in common vocabularies.
LOWEST_ID = 32


def random_words(config: BenchConfig) -> list[PlannedPrompt]:
    """Prompts of one-token words."""
    rng = stream_of(config.seed, "random")
    return [
        PlannedPrompt(TextPrompt(sentence(rng, asked)), asked, new)
        for asked, new in _lengths(config)
    ]


def random_ids(config: BenchConfig) -> list[PlannedPrompt]:
    """Prompts of token ids: exactly as long as planned."""
    rng = stream_of(config.seed, "random-ids")
    ids = range(LOWEST_ID, config.random_ids_below)
    return [
        PlannedPrompt(IdsPrompt(tuple(rng.choices(ids, k=asked))), asked, new)
        for asked, new in _lengths(config)
    ]


def warmup_prompts(config: BenchConfig) -> list[PlannedPrompt]:
    """Prompts that share no prefix with any dataset's: they warm the server, not its cache."""
    rng = stream_of(config.seed, "warm-up")
    return [
        PlannedPrompt(TextPrompt(f"warm-up {place} {sentence(rng, asked)}"), asked + 2, new)
        for place, (asked, new) in enumerate([(32, 16)] * config.warmup_requests)
    ]


def _lengths(config: BenchConfig) -> list[tuple[int, int]]:
    """Prompt and output lengths, each uniform from ratio * length to length."""
    rng = stream_of(config.seed, "lengths")
    ratio = config.random_range_ratio
    return [
        (
            _between(rng, config.random_input_len, ratio),
            _between(rng, config.random_output_len, ratio),
        )
        for _ in range(config.prompts_or(1000))
    ]


def _between(rng: random.Random, length: int, ratio: float) -> int:
    return rng.randint(max(1, int(length * ratio)), length)
