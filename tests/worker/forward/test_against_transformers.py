"""Every family we read gives what `transformers` gives for the same files."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import quants
from numpy.typing import NDArray

import transformers_models as hf
from paged_world import PagedWorld
from quantized_blocks import random_blocks
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.model import read_config, read_tensors
from radixgate.worker.weights.gguf.pre_tokenizers import PRE_TOKENIZERS
from radixgate.worker.weights.gguf.tokenizer import read_bundle
from radixgate.worker.weights.hf_folder import read_folder
from radixgate.worker.weights.model_config import ModelConfig
from tiny_llama import write_gguf
from transformers_models import HfModel
from varied_texts import varied_texts
from vocabularies import tokenizer_document

pytestmark = pytest.mark.slow  # the import alone takes seconds

# Longer than the trained context of every scaled model.
PROMPT = torch.randint(256, (90,), generator=torch.Generator().manual_seed(1)).tolist()
Tensors = Mapping[str, torch.Tensor]


def assert_answers_alike(model: HfModel, config: ModelConfig, tensors: Tensors) -> None:
    """Logits of the plain forward and of the paged one in chunks; and 16 tokens one by one."""
    truth = hf.logits(model, PROMPT)
    torch.testing.assert_close(reference_logits(config, tensors, PROMPT), truth, atol=1e-4, rtol=0)
    world = PagedWorld(config, tensors, TorchAttention, page_size=16)
    sequence = world.begin(PROMPT)
    world.step([(sequence, 50)])
    answer = world.greedy(sequence, 16)
    torch.testing.assert_close(
        torch.stack(sequence.logits[: len(PROMPT)]), truth, atol=1e-4, rtol=0
    )
    assert answer == hf.greedy(model, PROMPT, 16)


@pytest.mark.parametrize("name", hf.MODELS)
def test_a_folder_answers_as_transformers_does(tmp_path: Path, name: str) -> None:
    model = hf.make(name)
    folder = read_folder(hf.save(model, tmp_path))
    assert_answers_alike(model, folder.config, dict(folder.tensors))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_folder_in_half_precision_is_computed_in_single(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    folder = read_folder(hf.save(hf.make("qwen2").to(dtype), tmp_path))
    assert_answers_alike(hf.load(tmp_path), folder.config, dict(folder.tensors))


def test_a_folder_in_shards_is_one_model(tmp_path: Path) -> None:
    model = hf.make("qwen3")
    folder = read_folder(hf.save(model, tmp_path, max_shard_size="60KB"))
    assert len(folder.weight_files) > 3
    assert_answers_alike(model, folder.config, dict(folder.tensors))


def gguf_of(path: Path, model: HfModel, config: ModelConfig, kind: Kind) -> Path:
    """The model's weights as a GGUF file; it keeps those that can be read back from there."""
    stored = {}
    tensors = hf.weights(model)
    for place, (name, tensor) in enumerate(tensors.items()):
        values = tensor.numpy().copy()
        if values.ndim > 1:
            blocks = (
                random_blocks(kind, values.shape, seed=place, spread=values.shape[1] ** -0.5)
                if kind in (Kind.Q4_K, Kind.Q6_K)  # the library cannot write these
                else quants.quantize(values, kind)
            )
            tensor.copy_(torch.from_numpy(quants.dequantize(blocks, kind)))
            values = blocks.view(np.uint8)
        stored[name] = values
    architecture = config.architecture
    keys: dict[str, object] = {
        f"{architecture}.context_length": model.config.max_position_embeddings
    }
    scaling = config.rope_scaling
    if scaling is not None and scaling["rope_type"] == "llama3":
        stored["rope_freqs.weight"] = llama3_divisors(model)
    elif scaling is not None:
        prefix = f"{architecture}.rope.scaling"
        keys |= {f"{prefix}.type": scaling["rope_type"], f"{prefix}.factor": scaling["factor"]}
        if trained := scaling.get("original_max_position_embeddings"):
            keys[f"{prefix}.original_context_length"] = trained
    return write_gguf(path, stored, config, kind=kind, keys=keys)


def llama3_divisors(model: HfModel) -> NDArray[np.float32]:
    """As the conversion for llama.cpp writes them: how much longer each wave became."""
    scaled = model.get_buffer("model.rotary_emb.inv_freq")
    exponents = torch.arange(len(scaled)) / len(scaled)
    divisors: NDArray[np.float32] = (500.0**-exponents / scaled).numpy()
    return divisors


@pytest.mark.parametrize(
    ("name", "kind", "sizes"),
    [
        *((name, Kind.F32, {}) for name in ("llama", "llama-tied", "llama-bias", "llama3-rope")),
        *((name, Kind.F32, {}) for name in ("llama-linear-rope", "llama-yarn")),
        *((name, Kind.F32, {}) for name in ("qwen2", "qwen2-tied", "qwen3", "qwen3-tied")),
        *(("llama", kind, {}) for kind in (Kind.F16, Kind.BF16, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0)),
        ("llama", Kind.Q8_0, {}),
        ("qwen2", Kind.Q8_0, {}),
        ("qwen3", Kind.Q4_0, {}),
        *(
            ("llama", kind, {"hidden_size": 256, "intermediate_size": 256})
            for kind in (Kind.Q4_K, Kind.Q6_K)
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Kind) else value or "",
)
def test_a_gguf_file_answers_as_transformers_with_its_weights(
    tmp_path: Path, name: str, kind: Kind, sizes: dict[str, int]
) -> None:
    if not sizes:
        sizes = {"intermediate_size": 128}  # whole blocks of 32
    model = hf.make(name, **sizes)
    config = read_folder(hf.save(model, tmp_path / "folder")).config
    with GgufFile(gguf_of(tmp_path / "m.gguf", model, config, kind)) as file:
        assert read_config(file).context_length == config.context_length
        tensors = {n: torch.from_numpy(v) for n, v in read_tensors(file, read_config(file))}
        for tensor_name, tensor in hf.weights(model).items():
            torch.testing.assert_close(tensors[tensor_name], tensor, atol=0, rtol=0)
        assert_answers_alike(model, read_config(file), tensors)


@pytest.mark.parametrize("name", ["llama", "llama-tied", "qwen2", "qwen3"])
def test_transformers_reads_the_same_tensors_from_a_gguf_file(tmp_path: Path, name: str) -> None:
    """Its own reader knows nothing of ours: the names agree, and the order of rows."""
    model = hf.make(name, intermediate_size=128)
    config = read_folder(hf.save(model, tmp_path / "folder")).config
    path = gguf_of(tmp_path / "m.gguf", model, config, Kind.Q8_0)
    reader = import_module("transformers.modeling_gguf_pytorch_utils")
    theirs = reader.load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)
    with GgufFile(path) as file:
        ours = {n: torch.from_numpy(v) for n, v in read_tensors(file, read_config(file))}
    assert ours.keys() == theirs["tensors"].keys()
    for tensor_name, tensor in theirs["tensors"].items():
        torch.testing.assert_close(ours[tensor_name], tensor, atol=0, rtol=0)


def test_the_patterns_that_cut_text_are_those_of_transformers() -> None:
    qwen2 = import_module("transformers.models.qwen2.tokenization_qwen2")
    tiktoken = import_module("transformers.convert_slow_tokenizer").TikTokenConverter()
    patterns = {
        name: PRE_TOKENIZERS[name].steps[0]["pattern"]["Regex"] for name in ("qwen2", "llama-bpe")
    }
    assert patterns == {"qwen2": qwen2.PRETOKENIZE_REGEX, "llama-bpe": tiktoken.pattern}


def test_qwens_tokenizer_from_a_gguf_file_gives_the_ids_of_its_own(tmp_path: Path) -> None:
    special = ["<|endoftext|>"]
    document = tokenizer_document(["the", " the", "\u00e9", " you", "\n\n", "12", "日本"], special)
    model = document["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    theirs = hf.library().Qwen2Tokenizer(vocab=model["vocab"], merges=merges)
    keys: dict[str, object] = {
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": list(model["vocab"]),
        "tokenizer.ggml.token_type": [3 if token in special else 1 for token in model["vocab"]],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in merges],
        "tokenizer.ggml.bos_token_id": None,
        "tokenizer.ggml.eos_token_id": len(model["vocab"]) - 1,
    }
    with GgufFile(write_gguf(tmp_path / "m.gguf", {}, keys=keys)) as file:
        ours = Tokenizer.from_bundle(read_bundle(file).pack())
    for text in varied_texts():
        assert ours.encode(text).tolist() == theirs.encode(text), text
