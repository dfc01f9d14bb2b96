"""All layers in one call give what they give one by one, to the last bit."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import gguf
import pytest
import torch

from native_kernels import native_or_skip
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.llama import Llama
from radixgate.worker.forward.llama_cpu import CpuLlama
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.model_store import StoredModel, open_model
from radixgate.worker.weights.rounding import KvDtype
from tiny_llama import CONFIG, weights_of, write_gguf

PAGES, PAGE_SIZE = 8, 16
FAMILIES = {
    "llama": CONFIG,
    "qwen2": replace(CONFIG, architecture="qwen2", attention_bias=True),
    "qwen3": replace(CONFIG, architecture="qwen3", qk_norm=True),
    "one-layer": replace(CONFIG, layers=1, attention_output_bias=True, attention_bias=True),
}


def pool_of(config: ModelConfig, kv: KvDtype) -> KvPool:
    return KvPool.allocate(
        layers=config.layers,
        slots=PAGES * PAGE_SIZE,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        dtype=kv.torch_dtype,
    )


def passes(vocab_size: int) -> list[ForwardBatch]:
    """Two prompts, then a further token of one beside a chunk of the other."""
    generator = torch.Generator().manual_seed(1)
    tables = [torch.tensor([3, 5]), torch.tensor([1, 7])]

    def one(spans: list[tuple[int, int]], wanted: list[int]) -> ForwardBatch:
        places = [torch.arange(start, end) for start, end in spans]
        slots = [
            t[p // PAGE_SIZE] * PAGE_SIZE + p % PAGE_SIZE
            for t, p in zip(tables, places, strict=True)
        ]
        starts = [0, len(places[0]), len(places[0]) + len(places[1])]
        return ForwardBatch(
            token_ids=torch.randint(vocab_size, (starts[-1],), generator=generator),
            positions=torch.cat(places),
            slots=torch.cat(slots),
            q_starts=starts,
            context_lens=[end for _, end in spans],
            page_tables=tables,
            page_size=PAGE_SIZE,
            logit_rows=torch.tensor(wanted),
        )

    return [one([(0, 17), (0, 5)], [16]), one([(17, 18), (5, 12)], [0, 3, 7])]


@pytest.mark.parametrize("kv", KvDtype)
@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_and_kv_form(family: str, kv: KvDtype) -> None:
    native, config = native_or_skip(), FAMILIES[family]
    tensors = {name: torch.from_numpy(w) * 0.1 for name, w in weights_of(config).items()}
    compare(config, tensors, CpuKernels(native, tensors), kv)


def test_weights_in_blocks(tmp_path: Path) -> None:
    weights = {name: values * 0.1 for name, values in weights_of(CONFIG).items()}
    kind = gguf.GGMLQuantizationType.Q4_1
    path = write_gguf(tmp_path / "tiny.gguf", weights, CONFIG, kind=kind)
    model: StoredModel = open_model(str(path), tmp_path / "cache")
    kernels = CpuKernels(native_or_skip(), model.tensors, model.quantized)
    compare(model.config, model.tensors, kernels, KvDtype.FP16)


def compare(
    config: ModelConfig, tensors: Mapping[str, torch.Tensor], kernels: CpuKernels, kv: KvDtype
) -> None:
    native = native_or_skip()
    llama = Llama(config, tensors, kernels)
    pools = pool_of(config, kv), pool_of(config, kv)
    by_one, at_once = (CpuAttention(pool, config.heads, native) for pool in pools)
    whole = CpuLlama(llama, kernels, at_once, native)
    for batch in passes(config.vocab_size):
        expected = llama.forward(batch, by_one)
        assert torch.equal(whole.forward(batch, at_once), expected)
        assert torch.isfinite(expected).all()
    for side in ("keys", "values", "key_scales", "value_scales"):
        stored = zip(getattr(pools[0], side), getattr(pools[1], side), strict=True)
        assert all(torch.equal(one, other) for one, other in stored)


def test_a_pass_over_another_pool_is_refused() -> None:
    native = native_or_skip()
    tensors = {name: torch.from_numpy(w) for name, w in weights_of(CONFIG).items()}
    kernels = CpuKernels(native, tensors)
    one, other = (CpuAttention(pool_of(CONFIG, KvDtype.FP32), CONFIG.heads, native) for _ in "ab")
    whole = CpuLlama(Llama(CONFIG, tensors, kernels), kernels, one, native)
    with pytest.raises(AssertionError, match="another pool"):
        whole.forward(passes(CONFIG.vocab_size)[0], other)
