"""The engine core over the toy model, and what the plain reference says to a prompt."""

from collections.abc import Sequence
from functools import cache
from typing import Unpack

from native_kernels import has_native, native_or_skip
from radixgate.clock import Clock
from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.llama import Llama
from radixgate.worker.forward.llama_cpu import CpuLlama
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.steps.model_runner import Model, ModelRunner
from radixgate.worker.steps.page_copies import pool_copier
from radixgate.worker.weights.rounding import Arithmetic, KvDtype
from radixgate.worker.weights.toy import toy_config, toy_tensors
from small_engine import Settings, SmallEngine

CONFIG = toy_config()
TENSORS = toy_tensors(CONFIG)

# By how much the best two logits may differ where another order of sums may choose the other: a
# bit of a sum decides now and then how a stored number is rounded.
NEARLY_EQUAL = {KvDtype.FP32: 1e-3, KvDtype.FP16: 0.02, KvDtype.INT8: 0.2}


def toy_engine(
    *,
    pages: int = 256,
    kv: KvDtype = KvDtype.FP32,
    backend: str = "torch",
    clock: Clock | None = None,
    **settings: Unpack[Settings],
) -> SmallEngine:
    """Without a tokenizer: outputs are ids. Backend `cpu` is torch where there is no compiler."""
    page_size = settings.get("page_size", 4)
    pool = KvPool.allocate(
        layers=CONFIG.layers,
        slots=pages * page_size,
        kv_heads=CONFIG.kv_heads,
        head_dim=CONFIG.head_dim,
        dtype=kv.torch_dtype,
    )
    model, attention = _over(pool, backend)
    runner = ModelRunner(model, attention, page_size, copy_pages=pool_copier(pool, page_size))
    return SmallEngine(
        pages=pages,
        runner=runner,
        vocab_size=CONFIG.vocab_size,
        context=8192,
        clock=clock,
        **settings,
    )


def _over(pool: KvPool, backend: str) -> tuple[Model, AttentionBackend]:
    if backend == "torch" or not has_native():
        return _llama(), TorchAttention(pool)
    attention = CpuAttention(pool, CONFIG.heads, native_or_skip())
    llama, kernels = _native_llama()
    return CpuLlama(llama, kernels, attention, native_or_skip()), attention


@cache
def _llama() -> Llama:
    return Llama(CONFIG, TENSORS)


@cache
def _native_llama() -> tuple[Llama, CpuKernels]:
    kernels = CpuKernels(native_or_skip(), TENSORS)
    return Llama(CONFIG, TENSORS, kernels), kernels


def reference(prompt: Sequence[int], tokens: int, kv: KvDtype = KvDtype.FP32) -> list[int]:
    """Greedy output of the plain forward without cache."""
    return [token for token, _ in _reference(tuple(prompt), tokens, kv)]


def unlike_reference(
    prompt: Sequence[int], output: Sequence[int], tokens: int, kv: KvDtype = KvDtype.FP32
) -> str | None:
    """What is wrong with the first `tokens` of an output; None: nothing.

    After a choice between two that the reference holds for nearly equal, what follows is not its.
    """
    expected = _reference(tuple(prompt), tokens, kv)
    if len(output) != tokens:
        return f"{len(output)} tokens, not {tokens}"
    for place, (token, (right, lead)) in enumerate(zip(output, expected, strict=True)):
        if token != right:
            wrong = f"token {place} is {token}, not {right}, which leads by {lead:.4f}"
            return wrong if lead > NEARLY_EQUAL[kv] else None
    return None


@cache
def _reference(prompt: tuple[int, ...], tokens: int, kv: KvDtype) -> list[tuple[int, float]]:
    """Each id with its lead over the second best."""
    ids, output = list(prompt), []
    for _ in range(tokens):
        logits = reference_logits(CONFIG, TENSORS, ids, Arithmetic(kv))[-1]
        best = logits.topk(2)
        ids.append(int(best.indices[0]))
        output.append((ids[-1], float(best.values[0] - best.values[1])))
    return output
