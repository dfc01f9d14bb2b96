"""A port that somebody has is found before the models are loaded."""

import socket

import pytest

from radixgate.cli import main
from radixgate.errors import ConfigError
from radixgate.free_address import check_free


def test_a_taken_port_is_refused_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            check_free("127.0.0.1", port)
        assert caught.value.message.startswith(f"cannot listen on 127.0.0.1:{port}: ")
        assert caught.value.message.endswith("; --port takes another, and 0 picks a free one")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
def test_asking_does_not_keep_the_port(host: str) -> None:
    check_free(host, 0)
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    check_free("127.0.0.1", port)
    socket.create_server(("127.0.0.1", port)).close()


def test_a_host_that_is_not_ours_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1:8000"):
        check_free("192.0.2.1", 8000)


def test_up_starts_no_worker_where_the_port_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--model-path", "no such model", "--port", str(port)]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert f"radixgate up: cannot listen on 127.0.0.1:{port}" in said.err
