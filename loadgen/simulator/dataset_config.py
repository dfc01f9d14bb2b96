"""Which of bench's datasets is simulated where there is no trace."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig

DATASETS = ("random", "generated-shared-prefix", "rag", "agentic", "grpo")


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """As of `radixgate bench`; the words of a prompt are its tokens."""

    dataset_name: str | None = knob(
        None,
        help="what is sent: agentic, and generated-shared-prefix with several turns, in a closed "
        "loop; of grpo a step's rollouts at once; none: --trace says it",
        choices=DATASETS,
    )
    num_prompts: int | None = knob(None, help="requests of the dataset; none: as bench has them")
    random_input_len: int = knob(1024, help="longest random prompt", unit="tokens")
    random_output_len: int = knob(1024, help="longest random answer", unit="tokens")
    gsp_num_groups: int = knob(64, help="shared prefixes")
    gsp_prompts_per_group: int = knob(16, help="prompts per shared prefix, on average under zipf")
    gsp_system_prompt_len: int = knob(2048, help="shared prefix", unit="tokens")
    gsp_question_len: int = knob(128, help="question after it", unit="tokens")
    gsp_output_len: int = knob(256, help="answer", unit="tokens")
    gsp_group_distribution: str = knob(
        "uniform", help="how often each group is asked", choices=("uniform", "zipf")
    )
    gsp_zipf_alpha: float = knob(1.0, help="under zipf the g-th group has weight 1 / g ** this")

    def bench(self, seed: int) -> BenchConfig:
        """The same settings as bench has them. Raises ConfigError."""
        if self.dataset_name is None:
            raise ConfigError("give --trace FILE, or --dataset-name with one of bench's datasets")
        return BenchConfig(
            dataset_name=self.dataset_name,
            num_prompts=self.num_prompts,
            random_input_len=self.random_input_len,
            random_output_len=self.random_output_len,
            gsp_num_groups=self.gsp_num_groups,
            gsp_prompts_per_group=self.gsp_prompts_per_group,
            gsp_system_prompt_len=self.gsp_system_prompt_len,
            gsp_question_len=self.gsp_question_len,
            gsp_output_len=self.gsp_output_len,
            gsp_group_distribution=self.gsp_group_distribution,
            gsp_zipf_alpha=self.gsp_zipf_alpha,
            seed=seed,
        )
