"""Settings that cannot work, and the size of the pool."""

import pytest

from radixgate.errors import ConfigError
from radixgate.worker.requests.limits import limits_of, memory_available
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.weights.toy import toy_config

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page_size", 0),
        ("chunked_prefill_size", 8),
        ("chunked_prefill_size", 0),
        ("max_running_requests", 0),
        ("max_total_tokens", 15),
        ("mem_fraction_static", 1.5),
        ("schedule_policy", "shortest"),
        ("radix_eviction_policy", "tlru"),
        ("schedule_conservativeness", -1.0),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name) as refusal:
        EngineConfig(**{name: value})  # type: ignore[arg-type]
    assert refusal.value.param == name
    assert str(value) in refusal.value.message


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        pytest.param(EngineConfig(max_total_tokens=100), 96, id="whole-pages"),
        pytest.param(EngineConfig(mem_fraction_static=0.25), GIB // 4 // 1024, id="a-share"),
        pytest.param(EngineConfig(), 2**18, id="nothing-given-is-bounded"),
    ],
)
def test_the_pool_is_what_was_asked_for_or_fits(config: EngineConfig, tokens: int) -> None:
    model = toy_config()
    assert model.kv_elements_per_token * 4 == 1024 / 2
    limits = limits_of(config, model, lambda: GIB // 2)
    assert limits.pool_tokens == tokens
    assert limits.context_length == model.context_length


def test_a_context_longer_than_the_models_own_is_refused() -> None:
    with pytest.raises(ConfigError, match="9000"):
        limits_of(EngineConfig(context_length=9000), toy_config(), lambda: GIB)


def test_a_pool_without_a_page_is_refused() -> None:
    with pytest.raises(ConfigError, match="--max-total-tokens"):
        limits_of(EngineConfig(), toy_config(), lambda: 1000)


def test_the_kernel_says_how_much_memory_there_is() -> None:
    assert memory_available() > 2**20
