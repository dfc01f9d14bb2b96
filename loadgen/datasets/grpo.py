"""Rollouts as a trainer asks for them: groups with one prompt, step by step."""

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import sentence
from radixgate.loadgen.workload_config import WorkloadConfig

_MEDIAN_SHARE = 0.3
_SIGMA = 0.8


def grpo(config: BenchConfig, workload: WorkloadConfig) -> list[PlannedPrompt]:
    """`grpo_steps` times `grpo_groups` prompts, each `grpo_group_size` times in a row.

    Lengths of rollouts have a long tail: lognormal with its median at 0.3 of the longest, cut off
    there. Give `--temperature` what the trainer gives. `--num-prompts` cuts the last steps off.
    """
    words = stream_of(config.seed, "grpo-words")
    lengths = stream_of(config.seed, "grpo-lengths")
    longest = workload.grpo_output_len
    planned = []
    for step in range(workload.grpo_steps):
        for group in range(workload.grpo_groups):
            prompt = TextPrompt(sentence(words, workload.grpo_prompt_len))
            for _ in range(workload.grpo_group_size):
                drawn = _MEDIAN_SHARE * longest * lengths.lognormvariate(0.0, _SIGMA)
                planned.append(
                    PlannedPrompt(
                        prompt,
                        workload.grpo_prompt_len,
                        max(1, min(longest, round(drawn))),
                        group=f"s{step}g{group}",
                        step=step,
                    )
                )
    return planned[: config.prompts_or(len(planned))]
