"""Agents: conversations that grow by a tool's result with each call of the model."""

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.prompts import ChatPrompt, SentPrompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import sentence
from radixgate.loadgen.workload_config import WorkloadConfig


def agentic(config: BenchConfig, workload: WorkloadConfig) -> list[PlannedPrompt]:
    """`--num-prompts` calls in all (200 unless told otherwise), whole conversations of them.

    What the assistant said before is planned as well: words, and not what the server answered,
    so that every run sends the same bytes. Turns are interleaved by conversation.
    """
    words = stream_of(config.seed, "agentic-words")
    times = stream_of(config.seed, "agentic-times")
    systems = [sentence(words, workload.agentic_system_len) for _ in range(workload.agentic_agents)]
    planned: list[PlannedPrompt] = []
    conversations = -(-config.prompts_or(200) // workload.agentic_turns)
    for number in range(conversations):
        agent = number % workload.agentic_agents
        turns = [("system", systems[agent])]
        turns.append(("user", sentence(words, workload.agentic_task_len)))
        length = workload.agentic_system_len + workload.agentic_task_len
        for turn in range(workload.agentic_turns):
            tool_len = max(1, round(words.expovariate(1.0 / workload.agentic_tool_len)))
            think_s = workload.agentic_think_s
            planned.append(
                PlannedPrompt(
                    conversation(config, turns),
                    length,
                    workload.agentic_output_len,
                    session=f"agent{number}",
                    turn=turn,
                    group=f"a{agent}",
                    think_s=times.expovariate(1.0 / think_s) if think_s else 0.0,
                )
            )
            # A tool's result comes as a user's message: not every template knows tools.
            turns.append(("assistant", sentence(words, workload.agentic_output_len)))
            turns.append(("user", sentence(words, tool_len)))
            length += workload.agentic_output_len + tool_len
    return planned[: config.prompts_or(200)]


def conversation(config: BenchConfig, turns: list[tuple[str, str]]) -> SentPrompt:
    """As messages where the endpoint takes them, else as text with the roles written out."""
    if config.backend.endswith("-chat"):
        return ChatPrompt(tuple(turns))
    return TextPrompt("\n\n".join(f"{role}: {content}" for role, content in turns))
