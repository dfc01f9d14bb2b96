"""What a worker computes with: the form of weights and KV, and who multiplies and attends."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from radixgate.errors import ConfigError
from radixgate.log import fields
from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.forward.kernels import Kernels
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.kernels_torch import TorchKernels
from radixgate.worker.forward.llama import Llama
from radixgate.worker.forward.llama_cpu import CpuLlama
from radixgate.worker.forward.native_library import NativeLibrary, load_native, native_or_none
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.steps.model_runner import Model
from radixgate.worker.weights.model_store import StoredModel
from radixgate.worker.weights.quantized import QuantizedRows
from radixgate.worker.weights.rounding import Arithmetic, KvDtype, WeightsMode
from radixgate.worker.weights.tensor_files import PlacedTensors

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compute:
    """What was asked for, and what it comes to on this machine; fixed for the process's life."""

    arithmetic: Arithmetic
    backend: str  # torch, cpu or triton
    device: str
    native: NativeLibrary | None  # for the backend cpu

    def over(self, model: StoredModel, pool: KvPool) -> tuple[Model, AttentionBackend]:
        """The model over a pool, in as few calls as this machine allows. Raises as its parts do."""
        if self.native is None:
            return self.model(model), self.attention(pool, model.config.heads)
        kernels = self._native_kernels(model, model.tensors, self.native)
        native = CpuAttention(pool, model.config.heads, self.native)
        llama = Llama(model.config, model.tensors, kernels)
        return CpuLlama(llama, kernels, native, self.native), native

    def attention(self, pool: KvPool, heads: int) -> AttentionBackend:
        """Over a pool of this arithmetic's KV. Raises ConfigError for a backend not installed."""
        if self.native is not None:
            return CpuAttention(pool, heads, self.native)
        if self.backend == "triton":
            # An optional package; where it is missing, the import says so.
            from radixgate.worker.forward.attention_triton import TritonAttention

            return TritonAttention(pool)
        return TorchAttention(pool)

    def model(self, model: StoredModel) -> Llama:
        """The weights laid out for this machine. Raises ConfigError, ModelError."""
        tensors = PlacedTensors(model.tensors, self.device)
        return Llama(model.config, tensors, self._kernels(model, tensors))

    def _kernels(self, model: StoredModel, tensors: PlacedTensors) -> Kernels:
        if self.native is None:
            return TorchKernels(tensors, round_activations=self._blocks(model) is not None)
        return self._native_kernels(model, tensors, self.native)

    def _native_kernels(
        self, model: StoredModel, tensors: Mapping[str, torch.Tensor], native: NativeLibrary
    ) -> CpuKernels:
        return CpuKernels(native, tensors, self._blocks(model))

    def _blocks(self, model: StoredModel) -> Mapping[str, QuantizedRows] | None:
        """What is multiplied as it is stored; None: nothing, weights are float32."""
        if self.arithmetic.weights is not WeightsMode.Q4:
            return None
        if model.quantized is None:
            raise ConfigError(
                f"--weights q4 multiplies the blocks of a GGUF file, and {model.name} has none;"
                " give such a file to --model-path, or --weights fp32",
                param="weights",
            )
        return model.quantized


def choose_compute(config: EngineConfig, cache_dir: Path) -> Compute:
    """Compiles the native kernels if they are wanted, which takes seconds the first time.

    Raises ConfigError for what cannot go together, NativeUnavailable if the backend cpu is asked
    for by name and cannot be had.
    """
    device = config.device.partition(":")[0]
    backend = config.attention_backend
    if backend == "cpu" and device != "cpu":
        raise ConfigError(
            f"the attention backend cpu does not run on the device {config.device}",
            param="attention_backend",
        )
    _check_device(config.device)
    native = None
    if backend == "cpu":
        native = load_native(cache_dir)
    elif backend == "auto" and device == "cpu":
        native = native_or_none(cache_dir)
    if backend == "auto":
        backend = "torch" if native is None else "cpu"
    kv = _auto_kv(native) if config.kv_cache_dtype == "auto" else KvDtype(config.kv_cache_dtype)
    arithmetic = Arithmetic(kv, WeightsMode(config.weights))
    _log.info("computing", extra=fields(backend=backend, kv=kv, weights=config.weights))
    return Compute(arithmetic, backend, config.device, native)


def _check_device(device: str) -> None:
    """Raises ConfigError where torch has no such device, this machine none, or it holds no numbers
    (`meta`)."""
    try:
        torch.zeros(1, device=device).item()
    # Without CUDA in the build torch fails an assertion of its own.
    except (RuntimeError, AssertionError, ImportError) as exc:
        why = str(exc).partition("\n")[0]
        raise ConfigError(
            f"device {device!r} cannot be used: {why}; give --device cpu", param="device"
        ) from exc


def _auto_kv(native: NativeLibrary | None) -> KvDtype:
    """Half the memory, and no loss that could be measured (docs/performance-worker.md).

    Only where sums do not depend on the batch: elsewhere the last bit of a sum decides now and
    then how a number is rounded, and so a rounding makes more of a difference that was nearly none.
    """
    return KvDtype.FP32 if native is None else KvDtype.FP16
