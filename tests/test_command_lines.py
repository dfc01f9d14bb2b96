"""Command lines that users of SGLang bring along: every flag is taken, or refused by its name."""

import re

import pytest

from radixgate.commands import ENTRIES
from radixgate.configs.command import Command, Refusal
from radixgate.configs.load import load
from radixgate.errors import ConfigError

WORKER = [
    ("--model-path M --tp-size 8 --host 0.0.0.0 --port 30000 --enable-metrics", "--tp-size"),
    (
        "--model-path M --tp-size 8 --chunked-prefill-size 4096 --quantization fp8"
        " --kv-cache-dtype fp8_e5m2 --mem-fraction-static 0.90 --port 30000 --enable-metrics",
        "--tp-size --quantization --kv-cache-dtype",
    ),
    (
        "--model-path M --tp-size 2 --chunked-prefill-size 4096 --speculative-algorithm EAGLE3"
        " --speculative-draft-model-path D --speculative-num-steps 5 --speculative-eagle-topk 8"
        " --speculative-num-draft-tokens 6 --port 30001",
        "--tp-size --speculative-algorithm --speculative-draft-model-path --speculative-num-steps"
        " --speculative-eagle-topk --speculative-num-draft-tokens",
    ),
    (
        "--model-path M --tp-size 4 --quantization fp8 --chunked-prefill-size 8192"
        " --mem-fraction-static 0.88 --enable-metrics --enable-cache-report",
        "--tp-size --quantization",
    ),
    (
        "--model-path M --tp-size 2 --page-size 64 --enable-hierarchical-cache --hicache-ratio 2"
        " --hicache-size 200 --hicache-write-policy write_through --hicache-io-backend kernel"
        " --hicache-storage-prefetch-policy timeout",
        "--tp-size --enable-hierarchical-cache --hicache-ratio --hicache-size"
        " --hicache-write-policy --hicache-io-backend --hicache-storage-prefetch-policy",
    ),
    (
        "--model-path M --tp-size 2 --chunked-prefill-size 32768 --max-running-requests 512"
        " --max-prefill-tokens 65536 --mem-fraction-static 0.94 --schedule-conservativeness 0.3",
        "--tp-size",
    ),
    (
        "--model-path M --tp-size 2 --grammar-backend xgrammar --max-running-requests 64",
        "--tp-size --grammar-backend",
    ),
    ("--model-path M --radix-eviction-policy lru --page-size 16 --disable-radix-cache", ""),
    (
        "--model-path M --tp-size 32 --dist-init-addr node01:5000 --nnodes 4 --node-rank 0"
        " --enable-ep-moe --ep-size 32 --enable-dp-attention --dp-size 8 --enable-eplb"
        " --eplb-algorithm deepseek --eplb-rebalance-num-iterations 500"
        " --ep-num-redundant-experts 32",
        "--tp-size --dist-init-addr --nnodes --enable-ep-moe --ep-size --enable-dp-attention"
        " --dp-size --enable-eplb --eplb-algorithm --eplb-rebalance-num-iterations"
        " --ep-num-redundant-experts",
    ),
    (
        "--model-path M --tp-size 8 --disaggregation-mode prefill"
        " --disaggregation-transfer-backend mooncake --disaggregation-bootstrap-port 8998"
        " --disaggregation-ib-device mlx5_0",
        "--tp-size --disaggregation-mode --disaggregation-transfer-backend"
        " --disaggregation-bootstrap-port --disaggregation-ib-device",
    ),
    ("--model-path M --disable-cuda-graph --schedule-policy lpm", ""),
    ("--model-path M --disable-overlap-schedule", ""),
    ("--model-path M --ssl-certfile c.pem --ssl-keyfile k.pem --ssl-ca-certs ca.pem", ""),
    (
        "--model-path M --ssl-certfile c.pem --ssl-keyfile k.pem --ssl-keyfile-password p"
        " --enable-ssl-refresh",
        "--ssl-keyfile-password --enable-ssl-refresh",
    ),
    ("--model-path M --tp-size 1 --dp-size 1 --nnodes 1 --node-rank 0 --kv-cache-dtype auto", ""),
]
GATEWAY = [
    (
        "--worker-urls http://127.0.0.1:30001 http://127.0.0.1:30002 http://127.0.0.1:30003"
        " http://127.0.0.1:30004 --policy cache_aware --host 0.0.0.0 --port 30000",
        "",
    ),
    (
        "--worker-urls http://127.0.0.1:30001 http://127.0.0.1:30002 --policy round_robin"
        " --port 30000",
        "",
    ),
    (
        "--pd-disaggregation --prefill http://127.0.0.1:30011 8998 --prefill"
        " http://127.0.0.1:30012 8998 --decode http://127.0.0.1:30021 --prefill-policy cache_aware"
        " --decode-policy power_of_two --host 0.0.0.0 --port 8000",
        "--pd-disaggregation --prefill --decode --prefill-policy --decode-policy",
    ),
    (
        "--worker-urls https://127.0.0.1:30001 grpcs://127.0.0.1:30002 --tls-cert-path c.pem"
        " --tls-key-path k.pem --ca-cert-paths a.pem b.pem --client-cert-path d.pem"
        " --client-key-path e.pem --port 30000",
        "",
    ),
    (
        "--worker-urls http://127.0.0.1:30001 --enable-igw --log-level info --log-dir /var/log"
        " --prometheus-port 29000 --prometheus-host 0.0.0.0 --health-check-endpoint /health"
        " --disable-retries --disable-circuit-breaker --max-tree-size 67108864 --dp-aware",
        "--log-dir --prometheus-port --prometheus-host --disable-retries --disable-circuit-breaker"
        " --max-tree-size --dp-aware",
    ),
    (
        "--service-discovery --selector app=llm role=worker --service-discovery-port 8000"
        " --service-discovery-namespace prod --policy cache_aware --log-level debug",
        "--service-discovery --selector --service-discovery-port --service-discovery-namespace"
        " --log-level",
    ),
    (  # of vLLM's
        "--port 8001 --service-discovery static --static-backends http://a:1,http://b:2"
        " --static-models m,m --routing-logic roundrobin",
        "--service-discovery --static-backends --static-models --routing-logic",
    ),
    (
        "--processes 4 --workers-file w.yaml --tls-cert-path c.pem --tls-key-path k.pem"
        " --tls-client-ca-path a.pem --max-concurrent-requests 64 --queue-size 128",
        "",
    ),
]
BENCH = [
    (
        "--backend sglang --host 127.0.0.1 --port 30000 --dataset-name random"
        " --random-input-len 2048 --random-output-len 512 --random-range-ratio 0.5"
        " --num-prompts 500 --max-concurrency 25 --warmup-requests 30 --output-file result.jsonl",
        "",
    ),
    (
        "--backend sglang --port 30000 --dataset-name sharegpt --num-prompts 500 --request-rate 4",
        "",
    ),
]
LINES = [("worker", *line) for line in WORKER]
LINES += [("gateway", *line) for line in GATEWAY]
LINES += [("bench", *line) for line in BENCH]


def refused_in(command: Command, words: list[str]) -> list[str]:
    """The flags that are refused, in order, found by taking out one after the other."""
    found = []
    while True:
        try:
            load(command, words, environ={})
        except ConfigError as error:
            flag, reason = refusal_named(command, error.message)
            assert reason
            found.append(flag)
            words = without(flag, words)
        else:
            return found


def refusal_named(command: Command, message: str) -> tuple[str, str]:
    flag = message.split(":")[0].split()[0]
    refusal: Refusal | None = command.refused.get(flag)
    if refusal is None:  # the flag is taken, but not with this value
        assert message.startswith(f"{flag}: expected one of "), message
        return flag, message
    assert message.endswith(f": {refusal.reason}")
    return flag, refusal.reason


def without(flag: str, words: list[str]) -> list[str]:
    """The command line without any use of the flag and its values."""
    return re.sub(rf"{flag}(?= |$)( (?!--)\S+)*", "", " ".join(words)).split()


@pytest.mark.parametrize(
    ("name", "line", "refused"), [pytest.param(*line, id=line[1][:50]) for line in LINES]
)
def test_every_flag_is_taken_or_refused_by_name(name: str, line: str, refused: str) -> None:
    assert sorted(refused_in(ENTRIES[name].command, line.split())) == sorted(refused.split())
