"""Which dataset a name stands for."""

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.files import json_lines, sharegpt
from radixgate.loadgen.datasets.random_lengths import random_ids, random_words
from radixgate.loadgen.datasets.shared_prefix import shared_prefix
from radixgate.loadgen.schedule import PlannedPrompt

DATASETS = {
    "random": random_words,
    "random-ids": random_ids,
    "generated-shared-prefix": shared_prefix,
    "custom": json_lines,
    "sharegpt": sharegpt,
}


def planned_prompts(config: BenchConfig) -> list[PlannedPrompt]:
    """The prompts of the configured dataset, the same for the same seed.

    Raises ConfigError for a file that cannot be used.
    """
    return DATASETS[config.dataset_name](config)
