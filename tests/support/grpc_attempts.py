"""Attempts at a scripted worker of ours, and what their client hears."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from attached_worker import AttachedWorker
from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.attempt import AnswerCounts, Headers, WholeHead
from radixgate.gateway.upstream.attach import Receiver
from radixgate.gateway.workers.grpc_attempt import GrpcAttempt
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion


@dataclass
class Recorder:
    """A `Downstream` that keeps what it is told."""

    status: int | None = None
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    counts: AnswerCounts | None = None
    ended: bool = False
    failure: RadixgateError | None = None

    def on_head(self, status: int, headers: Headers) -> None:
        assert self.status is None
        self.status, self.headers = status, headers

    def on_body(self, data: bytes) -> None:
        assert data
        assert not self.over
        self.body += data

    def on_begin(self, head: WholeHead, own: bytes, body: bytes) -> None:
        self.on_head(head.status, head.headers)
        self.on_body(body)

    def lane(self) -> None:
        return None

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        self.on_head(head.status, head.headers)
        self.on_body(body)
        self.on_end(counts)

    def on_end(self, counts: AnswerCounts | None) -> None:
        assert not self.over
        self.ended, self.counts = True, counts

    def on_failure(self, error: RadixgateError) -> None:
        assert not self.over
        self.failure = error

    @property
    def over(self) -> bool:
        return self.ended or self.failure is not None


LEASE = 5  # the number of its lease
CONTEXT = AnswerContext("r1", "toy", 0, lambda token: bytes([token]))


PARSERS = {"chat": parse_chat, "completion": parse_completion, "native": parse_generate}


def begin(
    worker: AttachedWorker, kind: str, body: Mapping[str, object], prompts: int = 1
) -> tuple[GrpcAttempt, Recorder, list[pb.Submit]]:
    generation = PARSERS[kind](body)
    progress = AnswerProgress(generation, [array("I", [1])] * prompts)
    progress.open(CONTEXT, Random(7))
    return go_on(worker, progress, streamed=generation.stream)


def go_on(
    worker: AttachedWorker, progress: AnswerProgress, *, streamed: bool
) -> tuple[GrpcAttempt, Recorder, list[pb.Submit]]:
    """An attempt at what is left, and what it submits."""
    recorder = Recorder()
    attempt = GrpcAttempt(
        worker.stream, recorder, progress, streamed=streamed, on_over=lambda attempt: None
    )
    submitted: list[pb.Submit] = []
    to_stream = worker.stream.submit

    def submit(submits: Sequence[pb.Submit], receivers: Sequence[Receiver]) -> list[int]:
        submitted.extend(submits)
        return to_stream(submits, receivers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker.stream, "submit", submit)
        attempt.begin(iter("abcdef").__next__, LEASE)
    return attempt, recorder, submitted


CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
