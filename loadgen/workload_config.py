"""What the datasets beside the classic ones can be told."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class WorkloadConfig:
    """Shapes of rag, mooncake, agentic and grpo, and turns of generated-shared-prefix.

    Lengths are in words of about one token, or in ids where ids are sent.
    """

    gsp_range_ratio: float = knob(
        1.0, help="shortest length as a share of the longest, of prefix, question and answer"
    )
    gsp_num_turns: int = knob(1, help="turns of each conversation after its shared prefix")

    rag_documents: int = knob(200, help="rag: documents there are")
    rag_document_len: int = knob(512, help="rag: a document", unit="tokens")
    rag_per_question: int = knob(3, help="rag: documents before each question")
    rag_popular_share: float = knob(0.2, help="rag: share of the documents that is popular")
    rag_popular_asks: float = knob(0.8, help="rag: share of the picks that goes to them")
    rag_question_len: int = knob(64, help="rag: a question", unit="tokens")
    rag_output_len: int = knob(128, help="rag: an answer", unit="tokens")

    trace_block_size: int = knob(512, help="mooncake: tokens that a hash id stands for")
    trace_shrink: float = knob(
        1.0, help="mooncake: all lengths and blocks are divided by this, for small machines"
    )
    trace_tokens: str = knob(
        "words", help="mooncake: what hash ids are expanded to", choices=("words", "ids")
    )

    agentic_turns: int = knob(8, help="agentic: calls of the model in a conversation")
    agentic_system_len: int = knob(
        1024, help="agentic: instructions and tools, the same for all of an agent", unit="tokens"
    )
    agentic_agents: int = knob(4, help="agentic: kinds of agents, each with its instructions")
    agentic_task_len: int = knob(128, help="agentic: the task", unit="tokens")
    agentic_tool_len: int = knob(256, help="agentic: a tool's result, on average", unit="tokens")
    agentic_output_len: int = knob(64, help="agentic: an answer", unit="tokens")
    agentic_think_s: float = knob(1.0, help="agentic: a tool's running time, on average", unit="s")

    grpo_steps: int = knob(4, help="grpo: training steps")
    grpo_groups: int = knob(16, help="grpo: prompts in a step")
    grpo_group_size: int = knob(8, help="grpo: rollouts of each prompt")
    grpo_prompt_len: int = knob(256, help="grpo: a prompt", unit="tokens")
    grpo_output_len: int = knob(
        512, help="grpo: longest rollout; lengths are lognormal below it", unit="tokens"
    )

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}"
                )
        for name in ("gsp_range_ratio", "rag_popular_share", "rag_popular_asks"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ConfigError(
                    f"--{name.replace('_', '-')} must be over 0 and at most 1, "
                    f"not {getattr(self, name):g}"
                )
        if self.trace_shrink < 1.0:
            raise ConfigError(f"--trace-shrink must be at least 1, not {self.trace_shrink:g}")
        if self.agentic_think_s < 0.0:
            raise ConfigError(f"--agentic-think-s must not be negative: {self.agentic_think_s:g}")
        if self.rag_per_question > self.rag_documents:
            raise ConfigError(
                f"--rag-per-question {self.rag_per_question} is over "
                f"--rag-documents {self.rag_documents}"
            )


_AT_LEAST_ONE = (
    "gsp_num_turns",
    "rag_documents",
    "rag_document_len",
    "rag_per_question",
    "rag_question_len",
    "rag_output_len",
    "trace_block_size",
    "agentic_turns",
    "agentic_system_len",
    "agentic_agents",
    "agentic_task_len",
    "agentic_tool_len",
    "agentic_output_len",
    "grpo_steps",
    "grpo_groups",
    "grpo_group_size",
    "grpo_prompt_len",
    "grpo_output_len",
)
