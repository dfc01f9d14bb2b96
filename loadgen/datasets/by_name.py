"""Which dataset a name stands for."""

from collections.abc import Callable, Mapping

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.agentic import agentic
from radixgate.loadgen.datasets.files import json_lines, sharegpt
from radixgate.loadgen.datasets.grpo import grpo
from radixgate.loadgen.datasets.mooncake import mooncake
from radixgate.loadgen.datasets.rag import rag
from radixgate.loadgen.datasets.random_lengths import random_ids, random_words
from radixgate.loadgen.datasets.shared_prefix import shared_prefix
from radixgate.loadgen.schedule import PlannedPrompt
from radixgate.loadgen.workload_config import WorkloadConfig

DATASETS: Mapping[str, Callable[[BenchConfig, WorkloadConfig], list[PlannedPrompt]]] = {
    "random": lambda config, _: random_words(config),
    "random-ids": lambda config, _: random_ids(config),
    "generated-shared-prefix": shared_prefix,
    "custom": lambda config, _: json_lines(config),
    "sharegpt": lambda config, _: sharegpt(config),
    "rag": rag,
    "mooncake": mooncake,
    "agentic": agentic,
    "grpo": grpo,
}


def planned_prompts(
    config: BenchConfig, workload: WorkloadConfig | None = None
) -> list[PlannedPrompt]:
    """The prompts of the configured dataset, the same for the same seed.

    Raises ConfigError for a file that cannot be used.
    """
    return DATASETS[config.dataset_name](config, workload or WorkloadConfig())
