"""Which arithmetic and which backend a worker's settings come to."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from native_kernels import native_or_skip
from radixgate.errors import ConfigError, NativeUnavailable
from radixgate.worker.engine.compute import choose_compute
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.requests.limits import kv_token_bytes, limits_of
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.weights.model_store import DEFAULT_CACHE_DIR, open_model
from radixgate.worker.weights.rounding import Arithmetic, KvDtype, WeightsMode
from radixgate.worker.weights.toy import toy_config

CONFIG = EngineConfig(model_path="toy")


def pool(kv: KvDtype) -> KvPool:
    return KvPool.allocate(layers=1, slots=16, kv_heads=1, head_dim=8, dtype=kv.torch_dtype)


def test_with_a_compiler_the_kernels_compute_and_kv_takes_half_the_memory() -> None:
    native_or_skip()
    compute = choose_compute(CONFIG, DEFAULT_CACHE_DIR)
    assert compute.backend == "cpu"
    assert compute.arithmetic == Arithmetic(KvDtype.FP16, WeightsMode.FP32)
    assert isinstance(compute.attention(pool(KvDtype.FP16), 2), CpuAttention)


def test_without_a_compiler_torch_computes_in_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    compute = choose_compute(CONFIG, tmp_path)
    assert compute.backend == "torch"
    assert compute.arithmetic == Arithmetic()
    assert isinstance(compute.attention(pool(KvDtype.FP32), 2), TorchAttention)


def test_kernels_asked_for_by_name_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NativeUnavailable, match=r"no compiler g\+\+"):
        choose_compute(replace(CONFIG, attention_backend="cpu"), tmp_path)


def test_torch_asked_for_by_name_compiles_nothing(tmp_path: Path) -> None:
    compute = choose_compute(
        replace(CONFIG, attention_backend="torch", kv_cache_dtype="int8"), tmp_path
    )
    assert compute.native is None
    assert compute.arithmetic.kv is KvDtype.INT8
    assert list(tmp_path.iterdir()) == []


def test_the_kernels_are_for_the_processor(tmp_path: Path) -> None:
    config = replace(CONFIG, attention_backend="cpu", device="meta")
    with pytest.raises(ConfigError, match="cpu does not run on the device meta"):
        choose_compute(config, tmp_path)


@pytest.mark.parametrize("device", ["nowhere", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(ConfigError, match=f"device '{device}' cannot be used: ") as refused:
        choose_compute(replace(CONFIG, device=device), tmp_path)
    assert refused.value.param == "device"


def test_q4_needs_a_file_with_blocks(tmp_path: Path) -> None:
    compute = choose_compute(replace(CONFIG, attention_backend="torch", weights="q4"), tmp_path)
    with pytest.raises(ConfigError, match="toy has none"):
        compute.model(open_model("toy"))


@pytest.mark.parametrize(
    ("kv", "token_bytes"),
    [(KvDtype.FP32, 512), (KvDtype.FP16, 256), (KvDtype.INT8, 128 + 2 * 2 * 2 * 4)],
    ids=str,
)
def test_what_a_token_takes(kv: KvDtype, token_bytes: int) -> None:
    """The toy has 2 layers of 2 heads of 16 elements; int8 has a scale for each head."""
    assert kv_token_bytes(toy_config(), kv) == token_bytes
    limits = limits_of(CONFIG, toy_config(), lambda: 2**20, kv)
    assert limits.pool_tokens == 2**19 // token_bytes // 16 * 16


@pytest.mark.parametrize(
    ("name", "value"),
    [("attention_backend", "flashinfer"), ("kv_cache_dtype", "fp8"), ("weights", "q2")],
)
def test_other_names_are_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"'{value}' is not supported, only") as refused:
        EngineConfig(**{name: value})  # type: ignore[arg-type]
    assert refused.value.param == name


def test_what_is_rounded_to_eight_bits_is_at_most_half_a_step_off() -> None:
    x = torch.randn(40, 3, 64)
    step = x.abs().amax(dim=-1, keepdim=True) / 127
    assert ((KvDtype.INT8.rounded(x) - x).abs() <= step / 2 * 1.0001).all()
