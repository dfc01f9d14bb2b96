"""What a server prints is what its starter reads."""

import re

from radixgate.ready_lines import (
    GATEWAY_READY,
    WORKER_READY,
    gateway_ready,
    host_port,
    worker_ready,
)


def test_a_worker_is_read_as_it_announced_itself() -> None:
    match = re.search(WORKER_READY, worker_ready("127.0.0.1:1", "127.0.0.1:2", "toy"))
    assert match
    assert match.groupdict() == {"http": "127.0.0.1:1", "grpc": "127.0.0.1:2", "model": "toy"}


def test_an_ipv6_address_is_in_brackets() -> None:
    assert [host_port(host, 80) for host in ("::1", "::", "127.0.0.1", "a.b")] == [
        "[::1]:80",
        "[::]:80",
        "127.0.0.1:80",
        "a.b:80",
    ]


def test_a_gateway_is_read_as_it_announced_itself_with_more_on_the_line() -> None:
    match = re.search(GATEWAY_READY, gateway_ready("http://[::1]:8000") + " policy=cache_aware")
    assert match
    assert match["url"] == "http://[::1]:8000"
