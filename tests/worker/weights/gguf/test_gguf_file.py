"""A GGUF file is read exactly."""

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from gguf import quants

from radixgate.errors import ModelError
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.model import read_config, read_tensors
from radixgate.worker.weights.gguf.tokenizer import read_bundle
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.rope_scaling import inverse_frequencies
from tiny_llama import CONFIG, SPECIAL, TEMPLATE, UNTIED, VOCABULARY, weights_of, write_gguf

BIASED = replace(CONFIG, attention_bias=True, attention_output_bias=True)
QWEN2 = replace(CONFIG, architecture="qwen2", attention_bias=True)
QWEN3 = replace(UNTIED, architecture="qwen3", qk_norm=True, head_dim=32)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(CONFIG, id="tied"),
        pytest.param(UNTIED, id="untied"),
        pytest.param(BIASED, id="biased"),
        pytest.param(QWEN2, id="qwen2"),
        pytest.param(QWEN3, id="qwen3"),
    ],
)
def test_a_model_comes_back_as_it_was(tmp_path: Path, config: ModelConfig) -> None:
    weights = weights_of(config)
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights, config)) as file:
        assert read_config(file) == config
        read = dict(read_tensors(file, config))
    assert read.keys() == weights.keys()
    for name, values in weights.items():
        np.testing.assert_array_equal(read[name], values, err_msg=name)


@pytest.mark.parametrize(
    "kind", [Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1]
)
def test_stored_types_are_dequantized(tmp_path: Path, kind: Kind) -> None:
    weights = weights_of(CONFIG)
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights, kind=kind)) as file:
        read = dict(read_tensors(file, CONFIG))
    name = "model.layers.1.self_attn.k_proj.weight"  # quantized by rows, so the order is no matter
    expected = quants.dequantize(quants.quantize(weights[name], kind), kind)
    np.testing.assert_array_equal(read[name], expected)
    assert read[name].dtype == np.float32


def test_a_tensor_outlives_its_file(tmp_path: Path) -> None:
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights_of(CONFIG))) as file:
        norm = file.read("output_norm.weight")
    norm += 1.0


def test_numbers_of_every_type(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_uint8("u8", 255)
    writer.add_int8("i8", -1)
    writer.add_uint16("u16", 65_535)
    writer.add_int16("i16", -2)
    writer.add_int32("i32", -3)
    writer.add_uint64("u64", 2**63)
    writer.add_int64("i64", -(2**62))
    writer.add_float64("f64", 1e300)
    writer.add_bool("yes", True)
    writer.add_array("numbers", [1.5, 2.5])
    writer.add_array("flags", [True, False])
    writer.add_array("words", ["é", ""])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with GgufFile(tmp_path / "m.gguf") as file:
        assert dict(file.metadata) == {
            "general.architecture": "llama",
            "u8": 255,
            "i8": -1,
            "u16": 65_535,
            "i16": -2,
            "i32": -3,
            "u64": 2**63,
            "i64": -(2**62),
            "f64": 1e300,
            "yes": True,
            "numbers": [1.5, 2.5],
            "flags": [True, False],
            "words": ["é", ""],
        }
        assert file.find("u8", float) == 255.0
        assert file.find("absent", int) is None
        with pytest.raises(ModelError, match="yes is of type bool, not int"):
            file.find("yes", int)
        with pytest.raises(ModelError, match="words is not a list of int"):
            file.need_list("words", int)


def test_the_tokenizer_and_the_template_come_along(tmp_path: Path) -> None:
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights_of(CONFIG))) as file:
        bundle = read_bundle(file)
    tokenizer = Tokenizer.from_bundle(bundle.pack())
    assert tokenizer.encode("theday<|end|>").tolist() == [
        VOCABULARY["the"],
        VOCABULARY["day"],
        VOCABULARY["<|end|>"],
    ]
    assert tokenizer.special_ids == {VOCABULARY[token] for token in SPECIAL}
    assert tokenizer.eos_token_ids == {VOCABULARY["<|end|>"]}
    assert (bundle.bos_token, bundle.eos_token) == ("<|start|>", "<|end|>")
    assert bundle.chat_template == TEMPLATE


def test_every_token_that_ends_a_turn_counts(tmp_path: Path) -> None:
    keys = {"tokenizer.ggml.eot_token_id": VOCABULARY["<|start|>"]}
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), keys=keys)) as file:
        assert set(read_bundle(file).eos_token_ids) == {VOCABULARY[token] for token in SPECIAL}


def test_a_file_may_ask_for_the_start_token(tmp_path: Path) -> None:
    keys = {"tokenizer.ggml.add_bos_token": True}
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), keys=keys)) as file:
        tokenizer = Tokenizer.from_bundle(read_bundle(file).pack())
    assert tokenizer.encode("a", add_special_tokens=True).tolist() == [
        VOCABULARY["<|start|>"],
        VOCABULARY["a"],
    ]


@pytest.mark.parametrize(
    ("keys", "context", "scaling"),
    [
        pytest.param(
            {"type": "linear", "factor": 4.0},
            1024,
            {"rope_type": "linear", "factor": 4.0},
            id="linear",
        ),
        pytest.param(
            {"type": "linear", "factor": 4.0, "original_context_length": 64},
            256,
            {"rope_type": "linear", "factor": 4.0, "original_max_position_embeddings": 64},
            id="linear-scaled-already",
        ),
        pytest.param(
            {"type": "yarn", "factor": 1.7, "original_context_length": 128, "yarn_beta_fast": 31.5},
            256,
            {
                "rope_type": "yarn",
                "factor": 1.7,
                "original_max_position_embeddings": 128,
                "beta_fast": 31.5,
            },
            id="yarn",
        ),
        pytest.param({"type": "none"}, 256, None, id="none"),
    ],
)
def test_scaling_of_positions_is_read(
    tmp_path: Path, keys: dict[str, object], context: int, scaling: dict[str, object] | None
) -> None:
    named = {f"llama.rope.scaling.{key}": value for key, value in keys.items()}
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), keys=named)) as file:
        config = read_config(file)
    assert (config.context_length, config.rope_scaling) == (context, scaling)


def test_divisors_of_the_frequencies_are_scaling_too(tmp_path: Path) -> None:
    divisors = np.linspace(1, 8, 8, dtype=np.float32)
    weights = weights_of(CONFIG) | {"rope_freqs.weight": divisors}
    with GgufFile(write_gguf(tmp_path / "m.gguf", weights)) as file:
        config = read_config(file)
        assert dict(read_tensors(file, config)).keys() == weights_of(CONFIG).keys()
    assert config.rope_scaling == {"rope_type": "divisors", "divisors": divisors.tolist()}
    assert config.context_length == CONFIG.context_length
    np.testing.assert_allclose(
        inverse_frequencies(config).numpy() * divisors, inverse_frequencies(CONFIG).numpy()
    )
