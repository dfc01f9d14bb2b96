from dataclasses import replace

import pytest
import torch
import torch.nn.functional as functional

from paged_world import PLAIN, VARIANTS, random_weights
from radixgate.errors import ModelError
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.forward.linear import Linear
from radixgate.worker.forward.llama import Llama
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.tensor_files import PlacedTensors

WEIGHTS = random_weights(PLAIN)
Q_PROJ = "model.layers.1.self_attn.q_proj.weight"


def one_prompt(ids: list[int], logit_rows: list[int]) -> ForwardBatch:
    places = torch.arange(len(ids))
    return ForwardBatch(
        token_ids=torch.tensor(ids),
        positions=places,
        slots=places,
        q_starts=[0, len(ids)],
        context_lens=[len(ids)],
        page_tables=[places],
        page_size=1,
        logit_rows=torch.tensor(logit_rows, dtype=torch.int64),
    )


def attention() -> TorchAttention:
    return TorchAttention(
        KvPool.allocate(layers=2, slots=16, kv_heads=PLAIN.kv_heads, head_dim=PLAIN.head_dim)
    )


@pytest.mark.parametrize("rows", [[], [4], [1, 4], [3, 0]], ids=str)
def test_logits_are_those_of_the_rows_asked_for_in_their_order(rows: list[int]) -> None:
    ids = [3, 1, 4, 1, 5]
    logits = Llama(PLAIN, WEIGHTS).forward(one_prompt(ids, rows), attention())
    assert logits.dtype == torch.float32
    assert logits.shape == (len(rows), PLAIN.vocab_size)
    torch.testing.assert_close(logits, reference_logits(PLAIN, WEIGHTS, ids)[rows])


def test_half_precision_weights_are_computed_in_single() -> None:
    half = {name: tensor.half() for name, tensor in WEIGHTS.items()}
    single = {name: tensor.float() for name, tensor in half.items()}
    logits = Llama(PLAIN, half).forward(one_prompt([1, 2, 3], [2]), attention())
    torch.testing.assert_close(logits, reference_logits(PLAIN, single, [1, 2, 3])[[2]])


@pytest.mark.parametrize(
    ("config", "change", "complaint"),
    [
        pytest.param(PLAIN, {Q_PROJ: None}, f"{Q_PROJ} .*missing", id="missing"),
        pytest.param(
            PLAIN,
            {Q_PROJ: torch.zeros(8, 24)},
            rf"{Q_PROJ} .*\(8, 24\).*\(32, 24\)",
            id="wrong-shape",
        ),
        pytest.param(PLAIN, {"model.extra": torch.zeros(2)}, "model.extra", id="extra"),
        pytest.param(
            replace(PLAIN, qk_norm=True), {}, "layers.0.self_attn.q_norm.weight", id="no-qk-norm"
        ),
        pytest.param(
            replace(PLAIN, attention_bias=True), {}, "layers.0.self_attn.q_proj.bias", id="no-bias"
        ),
        pytest.param(
            replace(PLAIN, tied_embeddings=False), {}, "lm_head.weight", id="no-output-head"
        ),
    ],
)
def test_weights_that_are_not_the_configs_are_named(
    config: ModelConfig, change: dict[str, torch.Tensor | None], complaint: str
) -> None:
    changed = {**WEIGHTS, **change}
    with pytest.raises(ModelError, match=complaint):
        Llama(config, {name: tensor for name, tensor in changed.items() if tensor is not None})


@pytest.mark.parametrize("bias", [None, torch.randn(20)], ids=["no-bias", "bias"])
@pytest.mark.parametrize("rows", [0, 1, 3, 17])
def test_linear_is_a_product_with_the_weight(rows: int, bias: torch.Tensor | None) -> None:
    weight, x = torch.randn(20, 12), torch.randn(rows, 12)
    expected = functional.linear(x, weight, bias)
    torch.testing.assert_close(Linear(weight, bias)(x), expected, atol=1e-5, rtol=0)


def test_linear_works_where_onednn_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_has_mkldnn", False)
    weight, x = torch.randn(20, 12), torch.randn(3, 12)
    assert torch.equal(Linear(weight)(x), functional.linear(x, weight))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param({"architecture": "gpt2"}, "'gpt2'.*llama, qwen2, qwen3", id="architecture"),
        pytest.param({"layers": 0}, "layers is 0", id="no-layers"),
        pytest.param({"kv_heads": 3}, "kv_heads 3 .* heads 4", id="heads-in-uneven-groups"),
        pytest.param({"head_dim": 7}, "head_dim is 7", id="odd-head"),
        pytest.param({"rope_base": float("nan")}, "rope_base is nan", id="not-a-number"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        replace(PLAIN, **change)  # type: ignore[arg-type]


class NoAttention:
    """Of no device in particular."""

    def plan(self, batch: ForwardBatch) -> None:
        pass

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(q)


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_of_a_model_lives_on_the_device_of_its_weights(variant: str) -> None:
    # The device that only knows shapes refuses to be mixed with another, as a GPU does.
    config = VARIANTS[variant]
    model = Llama(config, PlacedTensors(random_weights(config), "meta"))
    batch = one_prompt([1, 2, 3], [2])
    moved = {
        name: getattr(batch, name).to("meta")
        for name in ("token_ids", "positions", "slots", "logit_rows")
    }
    logits = model.forward(replace(batch, **moved), NoAttention())
    assert (logits.device.type, logits.shape) == ("meta", (1, config.vocab_size))
