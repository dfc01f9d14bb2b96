"""What listens on `::` answers on IPv4, too."""

import socket

import pytest

from radixgate.every_address import on_every_address


def reached(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=30):
            return True
    except ConnectionRefusedError:
        return False


@pytest.mark.parametrize("host", ["::", "0::0"])
def test_all_addresses_are_those_of_both_kinds(host: str) -> None:
    listening = on_every_address(host, 0)
    assert listening is not None
    with listening:
        listening.listen()
        port = listening.getsockname()[1]
        assert [reached(one, port) for one in ("127.0.0.1", "::1")] == [True, True]
        with pytest.raises(OSError, match="in use"):
            on_every_address(host, port)


def test_a_port_is_shared_by_those_who_say_so() -> None:
    first = on_every_address("::", 0, shared=True)
    assert first is not None
    with first:
        second = on_every_address("::", first.getsockname()[1], shared=True)
        assert second is not None
        second.close()


@pytest.mark.parametrize("host", ["::1", "127.0.0.1", "0.0.0.0", "localhost", ""])
def test_other_hosts_are_listened_on_by_name(host: str) -> None:
    assert on_every_address(host, 0) is None
