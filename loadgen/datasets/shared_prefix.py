"""Groups of prompts with a common long prefix: what a prefix cache and its router live on."""

import random
from itertools import accumulate

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import sentence


def shared_prefix(config: BenchConfig) -> list[PlannedPrompt]:
    """Each prompt is its group's prefix and a question of its own.

    `uniform` asks every group equally often; under `zipf` the g-th group is asked with weight
    `1 / g ** alpha`. Unless ordered, the groups are mixed.
    """
    total = config.gsp_num_groups * config.gsp_prompts_per_group
    count = config.prompts_or(total)
    if count > total:
        raise ConfigError(
            f"--num-prompts {count} is over --gsp-num-groups {config.gsp_num_groups} times "
            f"--gsp-prompts-per-group {config.gsp_prompts_per_group} = {total}"
        )
    words = stream_of(config.seed, "gsp-words")
    prefixes = [sentence(words, config.gsp_system_prompt_len) for _ in range(config.gsp_num_groups)]
    asked = config.gsp_system_prompt_len + config.gsp_question_len
    return [
        PlannedPrompt(
            TextPrompt(f"{prefixes[group]}\n\n{sentence(words, config.gsp_question_len)}"),
            asked,
            config.gsp_output_len,
            group=f"g{group}",
        )
        for group in _groups(config, total)[:count]
    ]


def _groups(config: BenchConfig, total: int) -> list[int]:
    """Which group each prompt belongs to."""
    rng = stream_of(config.seed, "gsp-groups")
    if config.gsp_group_distribution == "zipf":
        groups = zipf_draws(rng, config.gsp_num_groups, config.gsp_zipf_alpha, total)
        return sorted(groups) if config.gsp_ordered else groups
    groups = [g for g in range(config.gsp_num_groups) for _ in range(config.gsp_prompts_per_group)]
    if not config.gsp_ordered:
        rng.shuffle(groups)
    return groups


def zipf_draws(rng: random.Random, items: int, alpha: float, count: int) -> list[int]:
    """`count` draws from 0 to items - 1, the i-th with weight `1 / (i + 1) ** alpha`."""
    weights = list(accumulate((place + 1) ** -alpha for place in range(items)))
    return rng.choices(range(items), cum_weights=weights, k=count)
