"""A body for foreign workers only, and workers of ours that join while it is read."""

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from books import identity
from foreign_asking import NoPrompts, foreign_fleet, new_asking
from radixgate.fleet.fleet import MirrorKey
from radixgate.gateway.asking import question as asking_module
from radixgate.gateway.asking.foreign_request import ForeignRequest
from radixgate.gateway.asking.known_chains import KnownChains
from radixgate.gateway.asking.large_bodies import read_large
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.proto.generation import GenerationRequest

CHATS = b"/v1/chat/completions"
HI = [{"role": "user", "content": "hi " * 200}]


@pytest.mark.parametrize("when", ["read_large", "chain"])
async def test_workers_of_ours_that_come_while_it_is_read_make_it_theirs_too(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(asking_module, "LARGE_BODY_BYTES", 100)
    fleet = foreign_fleet()
    asked: list[str] = []

    def ours_join() -> None:
        if "ours" not in {view.identity.id for view in fleet.workers()}:
            fleet.admit(replace(identity("ours", model="toy"), kind="grpc"))

    def read(path: bytes, body: bytes) -> ForeignRequest:
        if when == "read_large":
            ours_join()
        return read_large(path, body)

    def chain(chains: KnownChains, parent: int, text: bytes) -> "array[int]":
        if when == "chain":
            ours_join()
        return array("Q")

    class Prompts:
        async def read(
            self, model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
        ) -> tuple[PromptTokens, Mapping[MirrorKey, Sequence[int]]]:
            asked.append(model)
            return PromptTokens(()), {}

    monkeypatch.setattr(asking_module, "read_large", read)
    monkeypatch.setattr(KnownChains, "chain", chain)
    body = json.dumps({"model": "toy", "messages": HI}).encode()
    question = await Asking(fleet, Prompts(), StoredResponses()).read_own(CHATS, body)
    assert asked == ["toy"]
    assert question.generation is not None
    assert not question.ask.foreign


async def test_where_nobody_of_ours_joins_it_is_read_for_foreign_ones_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking_module, "LARGE_BODY_BYTES", 100)
    body = json.dumps({"model": "toy", "messages": HI}).encode()
    question = await new_asking().read_own(CHATS, body)
    assert question.generation is None
    assert question.ask.foreign


async def test_where_all_are_ours_nothing_is_read_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []

    def read_foreign(path: bytes, body: bytes) -> ForeignRequest:
        read.append(path)
        return ForeignRequest("toy", b"", None, 0, None)

    monkeypatch.setattr(asking_module, "read_foreign", read_foreign)
    fleet, body = foreign_fleet(), json.dumps({"model": "toy", "messages": HI}).encode()
    asking = Asking(fleet, NoPrompts(), StoredResponses())
    own = replace(identity("ours", model="toy"), kind="grpc")
    fleet.admit(own)
    assert asking.read(CHATS, body) is None
    assert asking.read(CHATS, body) is None
    assert read == [CHATS, CHATS]
    fleet.remove("a")
    assert asking.read(CHATS, body) is None
    assert read == [CHATS, CHATS]
