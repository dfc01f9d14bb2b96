"""A worker's URL names a host as the wire has it, or is refused."""

import pytest

from radixgate.errors import RequestError
from radixgate.gateway.workers.worker_address import read_worker_url

SCHEMES = frozenset(("http", "grpc"))


@pytest.mark.parametrize(
    ("url", "worker_id"),
    [
        ("http://10.0.0.7:8000", "10.0.0.7:8000"),
        (" HTTP://Worker-1.Example:8000/ ", "worker-1.example:8000"),
        ("grpc://stack_worker_1:30001", "stack_worker_1:30001"),
        ("http://xn--wrker-jua.example:80", "xn--wrker-jua.example:80"),
        ("http://worker.example.:80", "worker.example.:80"),
        (f"http://{'a' * 63}.b:80", f"{'a' * 63}.b:80"),
        (f"http://{'a.' * 126}b:80", f"{'a.' * 126}b:80"),
        ("http://[::1]:80", "[::1]:80"),
        ("http://[::ffff:10.0.0.7]:80", "[::ffff:10.0.0.7]:80"),
        ("http://[fe80::1%eth0.5]:80", "[fe80::1%eth0.5]:80"),
    ],
)
def test_a_host_is_a_name_or_an_address(url: str, worker_id: str) -> None:
    assert read_worker_url(url, SCHEMES).id == worker_id


@pytest.mark.parametrize(
    "host",
    [
        *("a b", 'a"b', "a;b", "%41", "-a", "a.-b", "a<b>", "$HOST", "\u200b"),
        *(".", ".a", "a..b", "a..", "a" * 64, "b." + "a" * 64, "a." * 126 + "bc"),
    ],
)
def test_what_is_none_is_refused(host: str) -> None:
    with pytest.raises(RequestError, match="no name of a host") as refused:
        read_worker_url(f"http://{host}:80", SCHEMES)
    assert refused.value.param == "url"


def test_several_in_one_word_are_told_how_they_are_given() -> None:
    with pytest.raises(RequestError, match="several have spaces between them"):
        read_worker_url("http://a:1,http://b:2", SCHEMES)


@pytest.mark.parametrize("host", ["stra\u00dfe.example", "\ufb01.example", "w\u00f6rker\u3002a"])
def test_no_other_name_is_suggested_than_the_one_given(host: str) -> None:
    # Older rules of such names make "strasse" of the first, which may be another's.
    with pytest.raises(RequestError, match=r"nor an address of one$"):
        read_worker_url(f"http://{host}:80", SCHEMES)


def test_a_name_in_another_script_is_told_how_it_is_written() -> None:
    with pytest.raises(RequestError, match=r"write it as 'xn--wrker-jua\.example'"):
        read_worker_url("http://w\u00f6rker.example:80", SCHEMES)
