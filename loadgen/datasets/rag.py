"""Questions over a few documents each, most of them popular ones."""

import random

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import sentence
from radixgate.loadgen.workload_config import WorkloadConfig

_INSTRUCTION = "answer from these documents"


def rag(config: BenchConfig, workload: WorkloadConfig) -> list[PlannedPrompt]:
    """An instruction, documents in the order of their rank, and a question of its own.

    `rag_popular_asks` of the picks go to the `rag_popular_share` most popular documents, evenly
    within the two classes. The prefix that two prompts share ends where their documents differ.
    The group is the first document. 500 prompts unless told otherwise.
    """
    words = stream_of(config.seed, "rag-words")
    documents = [sentence(words, workload.rag_document_len) for _ in range(workload.rag_documents)]
    picks = stream_of(config.seed, "rag-picks")
    length = len(_INSTRUCTION.split()) + workload.rag_question_len
    length += workload.rag_per_question * workload.rag_document_len
    planned = []
    for _ in range(config.prompts_or(500)):
        chosen = _pick(picks, workload)
        parts = [_INSTRUCTION, *(documents[place] for place in chosen)]
        parts.append(sentence(words, workload.rag_question_len))
        planned.append(
            PlannedPrompt(
                TextPrompt("\n\n".join(parts)),
                length,
                workload.rag_output_len,
                group=f"d{chosen[0]}",
            )
        )
    return planned


def _pick(rng: random.Random, workload: WorkloadConfig) -> list[int]:
    """Distinct documents, the popular ones first."""
    popular = max(1, round(workload.rag_documents * workload.rag_popular_share))
    chosen: set[int] = set()
    while len(chosen) < workload.rag_per_question:
        wants_popular = rng.random() < workload.rag_popular_asks
        left = [place for place in range(popular) if place not in chosen]
        if not wants_popular or not left:
            left = [p for p in range(popular, workload.rag_documents) if p not in chosen] or left
        chosen.add(rng.choice(left))
    return sorted(chosen)
