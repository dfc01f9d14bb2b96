"""What a mode costs in quality: likelihood of plain English, and how often the best token stays."""

import pytest
import torch
import torch.nn.functional as functional

from native_kernels import native_or_skip
from plain_english import PLAIN_ENGLISH
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.llama import Llama
from radixgate.worker.weights.model_store import StoredModel, open_model
from radixgate.worker.weights.rounding import FLOAT32, Arithmetic, KvDtype, WeightsMode

PAGE_SIZE = 16
# Measured figures are in docs/performance-worker.md; these are bounds, with room for another
# processor.
LIMITS = {
    Arithmetic(KvDtype.FP16): (0.002, 0.99),
    Arithmetic(KvDtype.INT8): (0.02, 0.95),
    Arithmetic(KvDtype.FP32, WeightsMode.Q4): (0.02, 0.93),
    Arithmetic(KvDtype.FP16, WeightsMode.Q4): (0.02, 0.93),
    Arithmetic(KvDtype.INT8, WeightsMode.Q4): (0.03, 0.92),
}


@pytest.fixture(scope="module")
def model() -> StoredModel:
    return open_model("smollm2")


@pytest.fixture(scope="module")
def text(model: StoredModel) -> torch.Tensor:
    ids = Tokenizer.from_bundle(model.tokenizer_bundle).encode(PLAIN_ENGLISH)
    return torch.tensor(list(ids))


@pytest.fixture(scope="module")
def exact(model: StoredModel, text: torch.Tensor) -> torch.Tensor:
    return logits_of(model, text, FLOAT32)


def logits_of(model: StoredModel, text: torch.Tensor, arithmetic: Arithmetic) -> torch.Tensor:
    """After every token, in one pass."""
    native, config, tokens = native_or_skip(), model.config, len(text)
    pages = -(-tokens // PAGE_SIZE)
    pool = KvPool.allocate(
        layers=config.layers,
        slots=pages * PAGE_SIZE,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        dtype=arithmetic.kv.torch_dtype,
    )
    blocks = model.quantized if arithmetic.weights is WeightsMode.Q4 else None
    places = torch.arange(tokens)
    batch = ForwardBatch(
        token_ids=text,
        positions=places,
        slots=places,
        q_starts=[0, tokens],
        context_lens=[tokens],
        page_tables=[torch.arange(pages)],
        page_size=PAGE_SIZE,
        logit_rows=places,
    )
    llama = Llama(config, model.tensors, CpuKernels(native, model.tensors, blocks))
    return llama.forward(batch, CpuAttention(pool, config.heads, native))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("arithmetic", LIMITS, ids=lambda a: f"{a.weights}-kv-{a.kv}")
def test_a_mode_stays_near_float32(
    arithmetic: Arithmetic, model: StoredModel, text: torch.Tensor, exact: torch.Tensor
) -> None:
    loss, agreement = LIMITS[arithmetic]
    logits = logits_of(model, text, arithmetic)
    worse = likelihood(exact, text) - likelihood(logits, text)
    same = (logits.argmax(dim=-1) == exact.argmax(dim=-1)).float().mean().item()
    print(f"{arithmetic}: {worse:+.4f} nats a token, {same:.4f} of the best tokens stay")
    assert abs(worse) < loss
    assert same > agreement


def likelihood(logits: torch.Tensor, text: torch.Tensor) -> float:
    """Mean of the log-likelihoods of the text's tokens, each given those before it."""
    return -functional.cross_entropy(logits[:-1], text[1:]).item()
