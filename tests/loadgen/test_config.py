"""The command lines that users of SGLang's bench bring along."""

import math
import shlex

import pytest

from radixgate.configs.command import Command
from radixgate.configs.load import load
from radixgate.errors import ConfigError
from radixgate.loadgen.config import BACKENDS, BenchConfig
from radixgate.loadgen.refused_flags import REFUSED

COMMAND = Command("bench", "Measure.", {"bench": BenchConfig}, REFUSED)

BROUGHT_ALONG = {
    "random": (
        "--backend sglang --host 127.0.0.1 --port 30000 --dataset-name random "
        "--random-input-len 2048 --random-output-len 512 --random-range-ratio 0.5 "
        "--num-prompts 500 --max-concurrency 25 --warmup-requests 30 --output-file result.jsonl"
    ),
    "sharegpt": (
        "--backend sglang --port 30000 --dataset-name sharegpt --num-prompts 500 --request-rate 4"
    ),
}


def parsed(line: str) -> BenchConfig:
    return load(COMMAND, shlex.split(line), {}).of(BenchConfig)


def test_the_random_line_means_what_it_says() -> None:
    assert parsed(BROUGHT_ALONG["random"]) == BenchConfig(
        backend="sglang",
        host="127.0.0.1",
        port=30000,
        dataset_name="random",
        random_input_len=2048,
        random_output_len=512,
        random_range_ratio=0.5,
        num_prompts=500,
        max_concurrency=25,
        warmup_requests=30,
        output_file="result.jsonl",
    )


def test_the_sharegpt_line_means_what_it_says() -> None:
    config = parsed(BROUGHT_ALONG["sharegpt"])
    assert (config.dataset_name, config.num_prompts, config.request_rate) == ("sharegpt", 500, 4.0)
    assert config.open_loop
    assert config.url == "http://127.0.0.1:30000"


def test_defaults() -> None:
    config = parsed("")
    assert math.isinf(config.request_rate)
    assert not config.open_loop
    assert config.url == "http://127.0.0.1:8000"


def test_an_infinite_rate_can_be_written() -> None:
    assert math.isinf(parsed("--request-rate inf").request_rate)


@pytest.mark.parametrize(
    ("line", "url"),
    [
        pytest.param("--backend sglang", "http://127.0.0.1:30000", id="sglang"),
        pytest.param("--backend vllm --host ::1", "http://[::1]:8000", id="ipv6"),
        pytest.param("--base-url http://h:1/x/", "http://h:1/x", id="base-url"),
    ],
)
def test_where_the_server_is(line: str, url: str) -> None:
    assert parsed(line).url == url


@pytest.mark.parametrize("flag", sorted(REFUSED))
def test_what_is_not_taken_is_refused_by_name_with_a_reason(flag: str) -> None:
    with pytest.raises(ConfigError, match=f"^{flag} 3: .{{10,}}"):
        parsed(f"{flag} 3")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("--request-rate 0", "--request-rate must be over 0", id="rate"),
        pytest.param("--port 99999", "--port is 99999, it must be from 0", id="port"),
        pytest.param("--num-prompts 0", "--num-prompts must be at least 1", id="count"),
        pytest.param("--max-concurrency 0", "--max-concurrency must be at least", id="places"),
        pytest.param("--random-range-ratio 1.5", "from 0 to 1, not 1.5", id="ratio"),
        pytest.param("--warmup-requests -1", "must not be negative", id="warm-up"),
        pytest.param("--random-ids-below 32", "over 32", id="ids"),
        pytest.param("--header nonsense", "Name=Value", id="header"),
        pytest.param("--idle-timeout-s 0", "--idle-timeout-s must be over 0", id="idle"),
        pytest.param("--dataset-name mmmu", "not 'mmmu'", id="dataset"),
        pytest.param("--backend trt", "not 'trt'", id="backend"),
    ],
)
def test_impossible_settings_are_named(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parsed(line)


def test_a_header_that_is_no_pair_is_not_printed() -> None:
    with pytest.raises(ConfigError) as caught:
        parsed("--header =secret")
    assert "secret" not in str(caught.value)


def test_every_backend_parses() -> None:
    assert [parsed(f"--backend {name}").backend for name in BACKENDS] == list(BACKENDS)
