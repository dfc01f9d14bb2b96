"""The compiled products, norms and rotations against torch's, in float32 and in blocks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import gguf
import pytest
import torch

from native_kernels import native_or_skip
from radixgate.errors import ModelError
from radixgate.worker.forward.kernels import Kernels
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.kernels_torch import TorchKernels
from radixgate.worker.forward.rope import Rope
from radixgate.worker.weights.gguf.model import quantized_weights
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.model_store import open_model
from radixgate.worker.weights.quantized import QuantizedRows
from tiny_llama import CONFIG, weights_of, write_gguf

QuantType = gguf.GGMLQuantizationType
# Rows around the heights of tiles, and beyond what one thread takes at once.
ROWS = (1, 2, 3, 5, 11, 12, 13, 25, 97, 193)
LAYER = "model.layers.1."
QKV = [LAYER + f"self_attn.{x}_proj" for x in "qkv"]
# Not a multiple of any panel's width.
ODD = replace(CONFIG, intermediate_size=160, hidden_size=96, heads=3, kv_heads=1, head_dim=32)


def tensors(config: ModelConfig) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(values) for name, values in weights_of(config).items()}


def both(config: ModelConfig) -> tuple[CpuKernels, TorchKernels]:
    found = tensors(config)
    return CpuKernels(native_or_skip(), found), TorchKernels(found)


def quantized(
    folder: Path, kind: QuantType, config: ModelConfig = CONFIG
) -> tuple[CpuKernels, TorchKernels]:
    """Over a file whose matrices are all of one kind."""
    path = write_gguf(folder / f"{kind.name}.gguf", weights_of(config), config, kind=kind)
    stored = open_model(str(path), folder / "cache")
    blocks: Mapping[str, QuantizedRows] = quantized_weights(path, stored.config)
    return (
        CpuKernels(native_or_skip(), stored.tensors, blocks),
        TorchKernels(stored.tensors, round_activations=True),
    )


def assert_alike(ours: Kernels, theirs: Kernels, config: ModelConfig, rows: int) -> None:
    """All kinds of products of a layer, relative to the size of what comes out."""
    x = torch.randn(rows, config.hidden_size)
    inner = torch.randn(rows, config.intermediate_size)
    gate, up = LAYER + "mlp.gate_proj", LAYER + "mlp.up_proj"
    close(ours.linear(QKV)(x), theirs.linear(QKV)(x))
    close(ours.gated(gate, up)(x), theirs.gated(gate, up)(x))
    down = [LAYER + "mlp.down_proj"]
    sum_of_ours, sum_of_theirs = x.clone(), x.clone()
    ours.linear(down).add_to(sum_of_ours, inner)
    theirs.linear(down).add_to(sum_of_theirs, inner)
    close(sum_of_ours, sum_of_theirs)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    size = theirs.abs().max().item()
    torch.testing.assert_close(ours, theirs, atol=2e-6 * size, rtol=1e-5)


@pytest.mark.parametrize("rows", ROWS)
def test_float_products(rows: int) -> None:
    assert_alike(*both(ODD), ODD, rows)


@pytest.mark.parametrize("kind", [QuantType.Q4_1, QuantType.Q4_0, QuantType.Q8_0])
@pytest.mark.parametrize("rows", [1, 2, 13, 97])
def test_products_of_blocks(tmp_path: Path, kind: QuantType, rows: int) -> None:
    assert_alike(*quantized(tmp_path, kind), CONFIG, rows)


def test_biases_are_added() -> None:
    config = replace(CONFIG, architecture="qwen2", attention_bias=True)
    assert_alike(*both(config), config, 7)


def test_a_row_is_the_same_bits_beside_any_others(tmp_path: Path) -> None:
    x = torch.randn(200, CONFIG.hidden_size)
    for kernels in (both(CONFIG)[0], quantized(tmp_path, QuantType.Q4_1)[0]):
        for product in (kernels.linear(QKV), kernels.gated(*(LAYER + "mlp.gate_proj",) * 2)):
            whole = product(x)
            for rows in ROWS:
                assert torch.equal(product(x[:rows]), whole[:rows])


def test_inputs_may_lie_in_wider_rows() -> None:
    kernels = both(CONFIG)[0]
    wide = torch.randn(5, 3 * CONFIG.hidden_size)
    part = wide[:, 7 : 7 + CONFIG.hidden_size]
    assert torch.equal(kernels.linear(QKV)(part), kernels.linear(QKV)(part.contiguous()))


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-3, 1e4])
def test_blocks_of_any_size_of_activations(tmp_path: Path, scale: float) -> None:
    ours, theirs = quantized(tmp_path, QuantType.Q4_1)
    x = torch.randn(3, CONFIG.hidden_size) * scale
    x[1, :32] = 0.0
    close(ours.linear(QKV)(x), theirs.linear(QKV)(x))


@pytest.mark.parametrize("rows", [1, 40, 300])
def test_norms_and_rotations(rows: int) -> None:
    ours, theirs = both(CONFIG)
    x, weight = torch.randn(rows, 96), torch.randn(96)
    close(ours.norm(x, weight, 1e-5), theirs.norm(x, weight, 1e-5))
    vectors = CONFIG.heads + 2 * CONFIG.kv_heads
    qkv = torch.randn(rows, vectors, CONFIG.head_dim)
    rotation = Rope(CONFIG).at(torch.randint(CONFIG.context_length, (rows,)))
    norm = (torch.randn(CONFIG.heads + CONFIG.kv_heads, CONFIG.head_dim), 1e-6)
    for each in (None, norm):
        turned = ours.rotated(qkv.clone(), CONFIG.heads, rotation, each)
        for part, other in zip(
            turned, theirs.rotated(qkv, CONFIG.heads, rotation, each), strict=True
        ):
            close(part, other)


def test_a_storage_type_without_kernels_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"layers\.1\.self_attn\.q_proj\.weight .* stored as Q5_0"):
        quantized(tmp_path, QuantType.Q5_0)[0].linear(QKV)


def test_blocks_of_different_bits_are_not_stacked() -> None:
    four = QuantizedRows(4, torch.zeros(2, 20, dtype=torch.uint8).numpy())
    eight = QuantizedRows(8, torch.zeros(2, 34, dtype=torch.uint8).numpy())
    with pytest.raises(ModelError, match="--weights fp32"):
        QuantizedRows.stacked([four, eight])
