"""Which headers cross the gateway: the operator's lists, and what ends here whatever they say."""

import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.heads.hop_headers import to_client, to_worker
from radixgate.gateway.settings.header_rules import HeaderConfig, everything
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import ScriptedWorker, answer
from small_gateway import small_gateway

NAMES = (b"x-one", b"x-two", b"cookie", b"content-type")


@pytest.mark.parametrize(
    ("allow", "deny", "crossing"),
    [
        pytest.param((), (), NAMES, id="nothing-listed"),
        pytest.param(("X-One",), (), (b"x-one", b"content-type"), id="only-one"),
        pytest.param(("x-*",), (), (b"x-one", b"x-two", b"content-type"), id="a-start"),
        pytest.param((), ("Cookie",), (b"x-one", b"x-two", b"content-type"), id="one-denied"),
        pytest.param(("x-*",), ("x-two",), (b"x-one", b"content-type"), id="deny-has-last-word"),
        pytest.param((), ("*",), (b"content-type",), id="the-body-is-described-always"),
    ],
)
def test_what_workers_get(
    allow: tuple[str, ...], deny: tuple[str, ...], crossing: tuple[bytes, ...]
) -> None:
    crosses = HeaderConfig(header_allowlist=allow, header_denylist=deny).to_worker()
    got = to_worker([(name, b"v") for name in NAMES], crosses)
    assert tuple(name for name, _ in got) == crossing


def test_hop_by_hop_headers_cross_on_no_list() -> None:
    headers = [(b"connection", b"x-mine"), (b"x-mine", b"1"), (b"te", b"trailers"), (b"x", b"2")]
    crosses = HeaderConfig(header_allowlist=("*",)).to_worker()
    assert to_worker(headers, crosses) == [(b"x", b"2")]


def test_one_value_of_several_is_not_denied_alone() -> None:
    headers = [(b"set-cookie", b"a"), (b"x", b"1"), (b"set-cookie", b"b")]
    assert to_client(headers) == headers
    denied = HeaderConfig(answer_header_denylist=("set-cookie",)).to_client()
    assert to_client(headers, denied) == [(b"x", b"1")]


def test_without_lists_no_name_is_looked_at() -> None:
    assert HeaderConfig().to_worker() is everything
    assert HeaderConfig().to_client() is everything


@pytest.mark.parametrize("name", ["", "x y", "x*y", "ключ", "x:"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no header's name"):
        HeaderConfig(header_denylist=(name,))


async def test_both_ways_through_a_gateway() -> None:
    lists = HeaderConfig(
        header_allowlist=("x-team", "authorization"), answer_header_denylist=("server",)
    )
    rules = GatewayRules(headers=lists)
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        worker.script = lambda _: answer(b"{}", headers=(("server", "s1"), ("x-took", "3")))
        sent = ("X-Team: a", "X-Other: b", "Authorization: Bearer k")
        reply = await gateway.post("/generate", {"text": "hi"}, *sent)
        (got,) = worker.requests
    assert (got.header("x-team"), got.header("x-other")) == ("a", None)
    assert got.header("authorization") == "Bearer k"
    assert (reply.header("server"), reply.header("x-took")) == (None, "3")


async def test_credentials_are_a_header_like_others() -> None:
    rules = GatewayRules(headers=HeaderConfig(header_denylist=("authorization",)))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        await gateway.post("/generate", {"text": "hi"}, "Authorization: Bearer k")
        (got,) = worker.requests
    assert got.header("authorization") is None
