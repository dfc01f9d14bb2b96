"""--weights q4: blocks multiplied as they are, whatever the batch, as its own reference says."""

from pathlib import Path

import gguf
import pytest
import torch

from native_kernels import native_or_skip
from paged_world import PagedWorld
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.kernels_torch import TorchKernels
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.weights.model_store import StoredModel, open_model
from radixgate.worker.weights.rounding import Arithmetic, WeightsMode
from tiny_llama import CONFIG, weights_of, write_gguf

Q4 = Arithmetic(weights=WeightsMode.Q4)


@pytest.fixture
def model(tmp_path: Path) -> StoredModel:
    """Random weights, small enough that logits are about 1, in a file of Q4_1 blocks."""
    weights = {name: values * 0.1 for name, values in weights_of(CONFIG).items()}
    kind = gguf.GGMLQuantizationType.Q4_1
    path = write_gguf(tmp_path / "tiny.gguf", weights, CONFIG, kind=kind)
    return open_model(str(path), tmp_path / "cache")


def world(model: StoredModel, seed: int = 0) -> PagedWorld:
    native = native_or_skip()
    return PagedWorld(
        model.config,
        model.tensors,
        lambda pool: CpuAttention(pool, CONFIG.heads, native),
        page_size=4,
        seed=seed,
        kernels=CpuKernels(native, model.tensors, model.quantized),
    )


def ids(count: int) -> list[int]:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(CONFIG.vocab_size, (count,), generator=generator).tolist()


def test_it_is_its_own_reference(model: StoredModel) -> None:
    """Nearer to it than to float32 by far; a rounding that tips over makes for the rest."""
    w = world(model)
    sequence = w.begin(ids(60))
    logits = w.step([(sequence, 60)])
    own = reference_logits(model.config, model.tensors, sequence.ids, Q4)
    exact = reference_logits(model.config, model.tensors, sequence.ids)
    assert error(logits, own) < 0.2 * error(logits, exact)
    assert error(logits, exact) < 0.05 * exact.square().mean().sqrt().item()


def test_torch_computes_the_same(model: StoredModel) -> None:
    kernels = TorchKernels(model.tensors, round_activations=True)
    native = native_or_skip()
    w = PagedWorld(
        model.config,
        model.tensors,
        lambda pool: CpuAttention(pool, CONFIG.heads, native),
        page_size=4,
        kernels=kernels,
    )
    sequence = w.begin(ids(60))
    logits = w.step([(sequence, 60)])
    own = reference_logits(model.config, model.tensors, sequence.ids, Q4)
    exact = reference_logits(model.config, model.tensors, sequence.ids)
    assert error(logits, own) < 0.2 * error(logits, exact)


def test_the_batch_makes_no_difference_to_the_last_bit(model: StoredModel) -> None:
    w = world(model)
    alone = w.begin(ids(70))
    w.step([(alone, 70)])

    w = world(model, seed=1)
    parent, other = w.begin(ids(70)), w.begin(ids(33))
    w.step([(parent, 9), (other, 30)])
    w.step([(other, 1), (parent, 40)])
    fork = w.fork(parent, 10, parent.ids[40:])
    w.step([(parent, 21), (fork, 30), (other, 2)])
    assert torch.equal(torch.stack(parent.logits), torch.stack(alone.logits))
    assert torch.equal(torch.stack(fork.logits), torch.stack(alone.logits[40:]))


def error(logits: torch.Tensor, truth: torch.Tensor) -> float:
    return (logits - truth).square().mean().sqrt().item()
