"""The engine over the embedded model: every token is the reference's own choice."""

import random

import pytest
import torch

from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.forward.llama import Llama
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.steps.model_runner import ModelRunner
from radixgate.worker.weights.model_store import StoredModel, open_model
from small_engine import Ear, SmallEngine

# Two logits nearer than this may change places with the order of float32 sums.
TIE = 1e-3
PAGES, PAGE_SIZE = 72, 16


@pytest.fixture(scope="module")
def model() -> StoredModel:
    return open_model("smollm2")


def engine_of(model: StoredModel) -> SmallEngine:
    config = model.config
    pool = KvPool.allocate(
        layers=config.layers,
        slots=PAGES * PAGE_SIZE,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
    )
    runner = ModelRunner(Llama(config, model.tensors), TorchAttention(pool), PAGE_SIZE)
    return SmallEngine(
        pages=PAGES,
        page_size=PAGE_SIZE,
        chunked_prefill_size=256,
        schedule_conservativeness=0.2,
        vocab_size=config.vocab_size,
        tokenizer=Tokenizer.from_bundle(model.tokenizer_bundle),
        runner=runner,
    )


def assert_greedy(model: StoredModel, prompt: list[int], output: list[int]) -> None:
    """One reference pass over prompt and output: each token is the best after those before it."""
    logits = reference_logits(model.config, model.tensors, [*prompt, *output[:-1]])
    rows = logits[len(prompt) - 1 :]
    chosen = rows[torch.arange(len(output)), torch.tensor(output)]
    assert (rows.max(dim=-1).values - chosen).max() < TIE


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_greedy_equals_the_reference_on_the_embedded_model(model: StoredModel) -> None:
    """Twenty prompts of 1 to 600 tokens with shared prefixes, in a pool that must evict."""
    engine = engine_of(model)
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    text = list(tokenizer.encode("The history of the sea is long, and few have written it. " * 60))
    rng = random.Random(4)
    lengths = [1, 2, 15, 16, 17, 33, 64, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600]
    prompts = [text[:length] for length in lengths]
    prompts += [[rng.randrange(1000) for _ in range(length)] for length in (40, 120)]
    rng.shuffle(prompts)
    ear = Ear()
    for handle, prompt in enumerate(prompts):
        engine.submit(ear, handle, prompt, max_tokens=64, ignore_eos=True)
    engine.run()
    stats = engine.core.stats()
    assert stats.evicted_tokens_total > 0
    assert stats.cached_tokens_total > 0
    for handle, prompt in enumerate(prompts):
        assert len(ear.ids(handle)) == 64
        assert_greedy(model, prompt, ear.ids(handle))
    engine.check_idle()


@pytest.mark.slow
def test_the_embedded_model_speaks_english(model: StoredModel) -> None:
    engine = engine_of(model)
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    prompt = tokenizer.encode(
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    ear = engine.answer(prompt, max_tokens=20)
    assert "Paris" in ear.text(1)
    assert ear.finish(1) == "STOP"
