"""A Hugging Face folder is read as it lies, and whatever is wrong with one is named."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from paged_world import LLAMA3_SCALING
from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.weights.hf_folder import read_folder
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.model_store import open_model
from tiny_llama import CONFIG, TEMPLATE, UNTIED, VOCABULARY, Weights, weights_of, write_folder

END, START = VOCABULARY["<|end|>"], VOCABULARY["<|start|>"]


def write(path: Path, content: object) -> None:
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def assert_holds(tensors: Mapping[str, torch.Tensor], weights: Weights) -> None:
    assert tensors.keys() == weights.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), weights[name], err_msg=name)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("config", [CONFIG, UNTIED], ids=["tied", "untied"])
def test_a_folder_is_read_whole(tmp_path: Path, config: ModelConfig, shards: int) -> None:
    weights = weights_of(config)
    folder = read_folder(write_folder(tmp_path, weights, config, shards=shards))
    assert folder.config == config
    assert_holds(folder.tensors, weights)
    assert len(folder.weight_files) == shards


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    weights = weights_of(CONFIG)
    tensors = read_folder(write_folder(tmp_path, weights, dtype=dtype)).tensors
    for name, tensor in tensors.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, torch.from_numpy(weights[name]).to(dtype).float())


def test_the_store_opens_a_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny-chat", weights_of(CONFIG))
    model = open_model(str(folder), tmp_path / "cache")
    assert (model.name, model.config) == ("tiny-chat", CONFIG)
    assert not (tmp_path / "cache").exists()
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    assert tokenizer.encode("theday").tolist() == [VOCABULARY["the"], VOCABULARY["day"]]
    assert tokenizer.eos_token_ids == {END}


def test_weights_and_config_make_the_identity_and_the_place_does_not(tmp_path: Path) -> None:
    def identity(name: str, seed: int, **keys: object) -> str:
        folder = write_folder(tmp_path / name, weights_of(CONFIG, seed), keys=keys)
        return open_model(str(folder), tmp_path).weights_id

    first = identity("a", 0)
    assert identity("b", 0) == first
    assert identity("c", 1) != first
    assert identity("d", 0, rope_theta=5_000.0) != first


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({"num_key_value_heads": None}, {"kv_heads": 4}, id="kv-heads-default"),
        pytest.param({"head_dim": None}, {}, id="head-dim-default"),
        pytest.param({"rope_theta": None}, {"rope_base": 10_000.0}, id="base-default"),
        pytest.param(
            {"rope_scaling": {"type": "linear", "factor": 2.0}},
            {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "context_length": 512},
            id="older-scaling",
        ),
        pytest.param(
            {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
            {"rope_base": 5e5},
            id="newer-base",
        ),
        pytest.param(
            {"rope_scaling": LLAMA3_SCALING, "rope_theta": 5e5},
            {"rope_base": 5e5, "rope_scaling": LLAMA3_SCALING},
            id="llama3",
        ),
    ],
)
def test_what_a_config_leaves_out_or_says_otherwise(
    tmp_path: Path, keys: dict[str, object], expected: dict[str, object]
) -> None:
    config = replace(CONFIG, **expected)  # type: ignore[arg-type]
    folder = write_folder(tmp_path, weights_of(config), CONFIG, keys=keys)
    assert read_folder(folder).config == config


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"model_type": "mamba"}, "model_type 'mamba' is not supported, only llama"),
        ({"model_type": None}, "model_type None"),
        ({"hidden_size": None}, "hidden_size is None"),
        ({"hidden_size": "64"}, "hidden_size is '64'"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"num_attention_heads": 0}, "config"),
        ({"rms_norm_eps": "small"}, "small"),
        ({"num_hidden_layers": 3}, r"model\.layers\.2\.\S+ .* is missing"),
        ({"vocab_size": 7}, r"embed_tokens\.weight has shape"),
        ({"tie_word_embeddings": False}, r"lm_head\.weight .* is missing"),
        ({"attention_bias": True}, r"q_proj\.bias .* is missing"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, keys: dict[str, object], named: str) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG), keys=keys)
    with pytest.raises(ModelError, match=named):
        read_folder(folder)


def test_a_tensor_that_we_would_ignore_is_refused(tmp_path: Path) -> None:
    extra = {"model.layers.0.self_attn.q_proj.lora_A": np.ones(2, np.float32)}
    with pytest.raises(ModelError, match="lora_A is not part of llama"):
        read_folder(write_folder(tmp_path, weights_of(CONFIG) | extra))


def test_what_old_exports_store_besides_is_passed_over(tmp_path: Path) -> None:
    weights = weights_of(CONFIG)
    extra = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(8, np.float32),
        "lm_head.weight": weights["model.embed_tokens.weight"].copy(),
    }
    assert_holds(read_folder(write_folder(tmp_path, weights | extra)).tensors, weights)


def test_integer_weights_are_refused_by_name(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG), dtype=torch.int8)
    with pytest.raises(ModelError, match=r"model\.norm\.weight is torch\.int8"):
        read_folder(folder).tensors["model.norm.weight"]


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("config.json", "{", r"config\.json"),
        ("tokenizer.json", "{", r"tokenizer\.json"),
        ("tokenizer_config.json", "[]", r"tokenizer_config\.json"),
        ("tokenizer_config.json", {"chat_template": 7}, "chat_template"),
        ("generation_config.json", {"eos_token_id": "x"}, "eos_token_id"),
        ("model-00001-of-00001.safetensors", "broken", r"00001\.safetensors"),
        ("model.safetensors.index.json", {"weight_map": {"a": "../b"}}, "not a file of this"),
        ("model.safetensors.index.json", {"weight_map": {"a": "none"}}, "none"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: object, named: str
) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG))
    write(folder / name, content)
    with pytest.raises(ModelError, match=named):
        read_folder(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG))
    (folder / name).unlink()
    with pytest.raises(ModelError, match=name):
        read_folder(folder)


def test_a_folder_without_weights_says_so(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {})
    for file in folder.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(ModelError, match=r"no \*\.safetensors file"):
        read_folder(folder)


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG))
    save_file({"model.norm.weight": torch.ones(64)}, folder / "more.safetensors")
    with pytest.raises(ModelError, match=r"model\.norm\.weight is in another file"):
        read_folder(folder)


SEVERAL = [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]


@pytest.mark.parametrize(
    ("name", "content", "template"),
    [
        pytest.param("chat_template.jinja", TEMPLATE, TEMPLATE, id="file"),
        pytest.param("tokenizer_config.json", {"chat_template": "x"}, "x", id="in-config"),
        pytest.param(
            "tokenizer_config.json",
            {
                "chat_template": [
                    {"name": "rag", "template": "r"},
                    {"name": "default", "template": "d"},
                ]
            },
            "d",
            id="several-by-name",
        ),
        pytest.param("tokenizer_config.json", {}, None, id="none"),
    ],
)
def test_the_template_is_found(
    tmp_path: Path, name: str, content: object, template: str | None
) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG))
    write(folder / name, content)
    assert read_folder(folder).bundle.chat_template == template


@pytest.mark.parametrize(
    ("name", "content", "ends"),
    [
        pytest.param("generation_config.json", {"eos_token_id": [START, END]}, {START, END}),
        pytest.param(
            "generation_config.json", {"eos_token_id": START}, {START, END}, id="and-ours"
        ),
        pytest.param("tokenizer_config.json", {"eos_token": "<|start|>"}, {START, END}, id="both"),
        pytest.param("tokenizer_config.json", {}, {END}, id="config-alone"),
    ],
)
def test_all_that_ends_an_answer_is_found(
    tmp_path: Path, name: str, content: object, ends: set[int]
) -> None:
    folder = write_folder(tmp_path, weights_of(CONFIG))
    write(folder / name, content)
    bundle: TokenizerBundle = read_folder(folder).bundle
    assert set(bundle.eos_token_ids) == ends
