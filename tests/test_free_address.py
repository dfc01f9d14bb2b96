"""A port that somebody has is found before the models are loaded."""

import errno
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


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b", "no host"])
def test_a_host_that_is_not_ours_is_refused_and_another_port_no_way_out(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_free(host, 8000)
    assert caught.value.message.startswith(f"cannot listen on {host}:8000: ")
    assert "--port" not in caught.value.message


def test_a_family_that_the_kernel_lacks_is_passed_over_as_the_gateway_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = lacks(monkeypatch, socket.AF_INET6)
    check_free("", 0)
    assert asked == [socket.AF_INET, socket.AF_INET6]


def test_an_address_of_a_family_that_the_kernel_lacks_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacks(monkeypatch, socket.AF_INET)
    with pytest.raises(ConfigError, match=r"^cannot listen on 127\.0\.0\.1:0: .*not supported$"):
        check_free("127.0.0.1", 0)


def lacks(monkeypatch: pytest.MonkeyPatch, lacking: socket.AddressFamily) -> list[int]:
    """From now on; the families that are asked for are listed. Names stand for both."""
    asked: list[int] = []
    whole = socket.socket

    def opened(family: int, kind: int, protocol: int) -> socket.socket:
        asked.append(family)
        if family == lacking:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported")
        return whole(socket.AF_INET, kind, protocol)

    def both(host: str | None, port: int, **_: int) -> list[object]:
        families = (socket.AF_INET,) if host else (socket.AF_INET, socket.AF_INET6)
        return [(family, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for family in families]

    monkeypatch.setattr(socket, "socket", opened)
    monkeypatch.setattr(socket, "getaddrinfo", both)
    return asked


def test_up_starts_no_worker_where_the_port_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--model-path", "no such model", "--port", str(port)]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert f"radixgate up: cannot listen on 127.0.0.1:{port}" in said.err
