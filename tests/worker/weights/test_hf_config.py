"""Each family's config.json is read as its own library reads it, and what is not built is named."""

from pathlib import Path
from typing import Any

import pytest

from paged_world import LLAMA3_SCALING
from radixgate.errors import ModelError
from radixgate.worker.weights.hf_config import read_hf_config
from radixgate.worker.weights.model_config import ModelConfig

FOLDER = Path("some/model")
SIZES = {
    "vocab_size": 100,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 1024,
}
YARN = {"rope_type": "yarn", "factor": 4.0}


def read(kind: str, **keys: object) -> ModelConfig:
    raw: dict[str, Any] = {"model_type": kind, **SIZES, **keys}
    return read_hf_config({key: value for key, value in raw.items() if value is not None}, FOLDER)


@pytest.mark.parametrize(
    ("kind", "keys", "biases"),
    [
        pytest.param("llama", {}, (False, False), id="llama"),
        pytest.param("llama", {"attention_bias": True}, (True, True), id="llama-bias"),
        pytest.param("qwen2", {}, (True, False), id="qwen2"),
        pytest.param("qwen2", {"attention_bias": False}, (True, False), id="qwen2-has-no-switch"),
        pytest.param("qwen3", {}, (False, False), id="qwen3"),
        pytest.param("qwen3", {"attention_bias": True}, (True, True), id="qwen3-bias"),
    ],
)
def test_which_projections_have_a_bias(
    kind: str, keys: dict[str, object], biases: tuple[bool, bool]
) -> None:
    config = read(kind, **keys)
    assert (config.attention_bias, config.attention_output_bias) == biases
    assert config.architecture == kind


def test_only_qwen3_has_a_norm_on_its_heads_and_a_size_of_head_of_its_own() -> None:
    assert [read(kind).qk_norm for kind in ("llama", "qwen2", "qwen3")] == [False, False, True]
    assert [read(kind).head_dim for kind in ("llama", "qwen2", "qwen3")] == [16, 16, 128]
    assert read("qwen3", head_dim=32).head_dim == 32


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        pytest.param({"rope_type": "default"}, 1024, id="unscaled"),
        pytest.param({"rope_type": "linear", "factor": 4.0}, 4096, id="linear"),
        pytest.param(
            {"rope_type": "linear", "factor": 4.0, "original_max_position_embeddings": 256},
            1024,
            id="linear-scaled-already",
        ),
        pytest.param(LLAMA3_SCALING, 1024, id="llama3"),
        pytest.param(YARN, 4096, id="yarn-before-scaling"),
        pytest.param(YARN | {"original_max_position_embeddings": 256}, 1024, id="yarn-after"),
        pytest.param(YARN | {"original_max_position_embeddings": 512}, 2048, id="yarn-between"),
    ],
)
def test_the_context_is_counted_after_scaling(rope: dict[str, object], expected: int) -> None:
    assert read("qwen3", rope_scaling=rope).context_length == expected
    assert read("qwen3", rope_parameters=rope | {"rope_theta": 5e5}).context_length == expected


@pytest.mark.parametrize("kind", ["llama3", "yarn"])
def test_the_trained_context_is_the_models_own_if_the_scaling_does_not_say(kind: str) -> None:
    scaling = {**LLAMA3_SCALING, "rope_type": kind}
    del scaling["original_max_position_embeddings"]
    read_scaling = read("llama", rope_scaling=scaling).rope_scaling
    assert read_scaling is not None
    assert read_scaling["original_max_position_embeddings"] == 1024


def test_an_older_name_of_the_scaling_is_read() -> None:
    older = read("llama", rope_scaling={"type": "linear", "factor": 2})
    assert older == read("llama", rope_scaling={"rope_type": "linear", "factor": 2})
    assert older.rope_scaling == {"rope_type": "linear", "factor": 2}


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"model_type": "qwen3_moe"}, "model_type 'qwen3_moe' is not supported, only llama"),
        ({"model_type": "mistral"}, "model_type 'mistral'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'dynamic' is not supported: its"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "'longrope' is not supported: it has"),
        ({"rope_scaling": {"type": "su"}}, "'su' is not supported, only default"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "factor is None"),
        ({"rope_scaling": {"rope_type": "linear", "factor": "two"}}, "factor is 'two'"),
        ({"rope_scaling": LLAMA3_SCALING | {"low_freq_factor": 9.0}}, "low_freq_factor 9.0 must"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1.0}}}, "'full_attention'"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor 0.5"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"use_sliding_window": True}, "use_sliding_window True"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding_attention"),
        ({"num_key_value_heads": 3}, "kv_heads 3 does not divide heads 4"),
        ({"head_dim": 15}, "head_dim is 15"),
    ],
)
def test_what_is_not_built_is_named_with_the_folder(keys: dict[str, object], named: str) -> None:
    with pytest.raises(ModelError, match=named) as refused:
        read("qwen2", **keys)
    assert str(FOLDER) in str(refused.value)


def test_from_which_context_on_attention_takes_more_operations_than_the_weights() -> None:
    """Of a token: 64 x (64 + 64 + 32 + 32) + 3 x 64 x 96; with each token before it 128."""
    assert read("llama").even_context == 30_720 // 128
