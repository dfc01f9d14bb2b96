"""A body of megabytes is read beside the loop, and says the same as one that is read at once."""

import asyncio
import json
import threading

import pytest

from foreign_asking import new_asking
from radixgate.errors import RequestError, UnknownModel
from radixgate.gateway.asking import large_bodies
from radixgate.gateway.asking import question as asking_module
from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign
from radixgate.gateway.asking.large_bodies import LARGE_BODY_BYTES, read_large
from radixgate.gateway.attempt.caller import ANYONE, Caller
from raw_client import RawClient, request
from scripted_worker import ScriptedWorker
from small_gateway import CHAT, chat_body, small_gateway
from until import until

CHATS = b"/v1/chat/completions"
COMPLETIONS = b"/v1/completions"
TENANT = Caller(tenant="a", salted=True)
HI = [{"role": "user", "content": "hi " * 200}]
PICTURE = {"type": "image_url", "image_url": {"url": "data:" + "QUJD" * 2_000}}


@pytest.mark.parametrize(
    ("path", "body", "caller"),
    [
        pytest.param(CHATS, {"messages": HI}, ANYONE, id="chat"),
        pytest.param(CHATS, {"messages": HI, "cache_salt": "s"}, TENANT, id="salted"),
        pytest.param(CHATS, {"messages": HI, "user": "u", "priority": 3}, ANYONE, id="session"),
        pytest.param(CHATS, {"messages": HI, "lora_path": "x"}, ANYONE, id="adapter"),
        pytest.param(CHATS, {"messages": [*HI, *HI], "tools": [{"a": 1}]}, ANYONE, id="tools"),
        pytest.param(
            CHATS, {"messages": [{"role": "user", "content": [PICTURE]}]}, ANYONE, id="picture"
        ),
        pytest.param(COMPLETIONS, {"prompt": "a" * 999}, ANYONE, id="completion"),
        pytest.param(COMPLETIONS, {"prompt": [1, 2, 3] * 99}, ANYONE, id="ids"),
        pytest.param(b"/v1/embeddings", {"input": ["a" * 500, "b"]}, ANYONE, id="embeddings"),
        pytest.param(b"/v1/rerank", {"query": "q" * 500, "documents": []}, ANYONE, id="rerank"),
        pytest.param(
            b"/v1/responses",
            {"input": "a" * 500, "previous_response_id": "r", "store": True},
            ANYONE,
            id="response",
        ),
    ],
)
async def test_it_is_asked_as_it_would_be_at_once(
    monkeypatch: pytest.MonkeyPatch, path: bytes, body: dict[str, object], caller: Caller
) -> None:
    written = json.dumps({"model": "toy", **body}).encode()
    at_once = new_asking().read(path, written, caller)
    monkeypatch.setattr(asking_module, "LARGE_BODY_BYTES", 100)
    assert new_asking().read(path, written, caller) is None
    assert await new_asking().read_own(path, written, caller) == at_once


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({"messages": []}, RequestError, id="no-messages"),
        pytest.param({"messages": HI, "top_p": 5}, RequestError, id="out-of-range"),
        pytest.param({"messages": HI, "model": "other"}, UnknownModel, id="unknown-model"),
        pytest.param({"messages": HI, "lora_path": "x"}, UnknownModel, id="another-s-adapter"),
    ],
)
async def test_what_is_wrong_is_refused_as_at_once(
    monkeypatch: pytest.MonkeyPatch, body: dict[str, object], error: type[RequestError]
) -> None:
    caller = Caller(models=frozenset(("toy",)))
    written = json.dumps({"model": "toy", "more": "x" * 200, **body}).encode()
    with pytest.raises(error) as at_once:
        new_asking().read(CHATS, written, caller)
    monkeypatch.setattr(asking_module, "LARGE_BODY_BYTES", 100)
    with pytest.raises(error) as later:
        await new_asking().read_own(CHATS, written, caller)
    assert later.value.message == at_once.value.message


IDS = json.dumps([7, 8] * 50).encode()


@pytest.mark.parametrize(
    ("path", "field", "written", "prompt"),
    [
        pytest.param(COMPLETIONS, "prompt", IDS, IDS, id="ids"),
        pytest.param(
            COMPLETIONS,
            "prompt",
            b'["first \\"one\\"", %b]' % (b'"x",' * 99 + b"5"),
            b'first "one"',
            id="texts",
        ),
        pytest.param(
            COMPLETIONS,
            "prompt",
            b"[ [1, 2], %b]" % (b"[3]," * 99 + b"[4]"),
            b"\1\0\0\0\2\0\0\0",
            id="arrays-of-ids",
        ),
        pytest.param(b"/generate", "input_ids", IDS, IDS, id="native-ids"),
        pytest.param(
            b"/v1/embeddings", "input", b'["a", %b]' % (b'"b",' * 99 + b'"c"'), b"a", id="in"
        ),
    ],
)
def test_of_a_long_array_the_first_item_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, path: bytes, field: str, written: bytes, prompt: bytes
) -> None:
    monkeypatch.setattr(large_bodies, "_LONG_BYTES", 100)
    body = b'{"model": "toy", "user": "u", "%b": %b, "n": 1}' % (field.encode(), written)
    assert read_large(path, body) == ForeignRequest("toy", prompt, "u", 0, None)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(b'[{"a": 1}, {"b": 2}]', id="objects"),
        pytest.param(b"[null, 5]", id="nothing"),
        pytest.param(b'["a", 5]', id="mixed-and-short"),
        pytest.param(b"[]", id="empty"),
        pytest.param(b'"text"', id="text"),
    ],
)
def test_what_is_no_long_array_is_read_as_ever(
    monkeypatch: pytest.MonkeyPatch, written: bytes
) -> None:
    monkeypatch.setattr(large_bodies, "_LONG_BYTES", 10)
    if written == b'["a", 5]':
        monkeypatch.setattr(large_bodies, "_LONG_BYTES", 100)
    body = b'{"model": "toy", "input": %b}' % written
    try:
        wanted: object = read_foreign(b"/v1/embeddings", body)
    except RequestError as error:
        with pytest.raises(RequestError, match=error.message[:20]):
            read_large(b"/v1/embeddings", body)
    else:
        assert read_large(b"/v1/embeddings", body) == wanted


async def test_it_goes_on_untouched_and_is_read_in_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_in: list[str] = []

    def noted(path: bytes, body: bytes) -> ForeignRequest:
        read_in.append(threading.current_thread().name)
        return read_large(path, body)

    monkeypatch.setattr(asking_module, "read_large", noted)
    text = "a text that comes again and again " * (LARGE_BODY_BYTES // 30)
    body = json.dumps(chat_body(text, unknown_field=[1, {"b": 2.50}])).encode()
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        assert (await gateway.post(CHAT, body)).status == 200
        assert worker.requests[0].body == body
        assert (gateway.in_flight(), len(gateway.gateway.headquarters.path.held)) == (0, 0)
    assert [name.split("_")[0] for name in read_in] == ["large-bodies"]


async def test_a_client_that_leaves_while_it_is_read_is_sent_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, go_on = threading.Event(), threading.Event()

    def slow(path: bytes, body: bytes) -> ForeignRequest:
        reads.set()
        go_on.wait(5)
        return read_large(path, body)

    monkeypatch.setattr(asking_module, "read_large", slow)
    monkeypatch.setattr(asking_module, "LARGE_BODY_BYTES", 100)
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        held = gateway.gateway.headquarters.path.held
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body("x" * 200)))
            await until(reads.is_set)
            assert len(held) == 1
            # Others are served meanwhile.
            assert (await gateway.post(CHAT, b'{"messages":[{"role":"u"}]}')).status == 200
        await until(lambda: gateway.gateway.metrics.in_flight == 0)
        go_on.set()
        await asyncio.sleep(0)
        assert (len(held), len(worker.requests)) == (0, 1)
