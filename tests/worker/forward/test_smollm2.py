"""The embedded model answers sensibly: weights, rotation, template and tokenizer fit together."""

from collections.abc import Sequence

import pytest

from paged_world import PagedWorld
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.reference import reference_greedy
from radixgate.worker.weights.model_store import StoredModel, open_model

pytestmark = pytest.mark.slow

QUESTION = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
    "<|im_start|>assistant\n"
)


@pytest.fixture(scope="module")
def model() -> StoredModel:
    return open_model("smollm2")


@pytest.fixture(scope="module")
def tokenizer(model: StoredModel) -> Tokenizer:
    return Tokenizer.from_bundle(model.tokenizer_bundle)


@pytest.fixture(scope="module")
def answer(model: StoredModel, tokenizer: Tokenizer) -> Sequence[int]:
    tensors = dict(model.tensors)
    return reference_greedy(model.config, tensors, tokenizer.encode(QUESTION), 9)


def test_the_plain_forward_knows_the_capital_of_france(
    answer: Sequence[int], tokenizer: Tokenizer
) -> None:
    assert "Paris" in tokenizer.decode(answer)


@pytest.mark.parametrize("page_size", [1, 16], ids="page-{}".format)
def test_paged_in_chunks_it_answers_the_same(
    model: StoredModel, tokenizer: Tokenizer, answer: Sequence[int], page_size: int
) -> None:
    world = PagedWorld(
        model.config, model.tensors, TorchAttention, page_size=page_size, pages=128 // page_size
    )
    prompt = tokenizer.encode(QUESTION)
    sequence = world.begin(prompt)
    world.step([(sequence, 11)])
    assert world.greedy(sequence, len(answer)) == list(answer)
