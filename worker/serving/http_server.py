"""The worker's own HTTP server: the OpenAI endpoints and SGLang's `/generate`."""

import asyncio
import uuid
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web

from radixgate.errors import NoWorkerAvailable, RadixgateError, UnknownModel
from radixgate.proto import sse
from radixgate.proto.error_body import error_event
from radixgate.proto.fields import decode_object
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import GenerationRequest, encode_prompt
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.answer import Answer, Asked
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.request_body import BodyPace, read_body

Parse = Callable[[Mapping[str, object]], GenerationRequest]


class GenerationRoutes:
    """Parses, tokenizes in a thread, and streams what the engine produces."""

    def __init__(
        self,
        engine: Engine,
        encoder: PromptEncoder,
        info: pb.WorkerInfo,
        wall_clock: Callable[[], float],
        serving: Callable[[], bool],
        arriving_requests: ArrivingRequests,
        *,
        report_cached: bool = True,
    ) -> None:
        """`serving` False: the worker drains, and takes no new prompts. `arriving_requests`: where
        those are found that the engine has not got yet. `report_cached`: OpenAI's usage says how
        many prompt tokens were cached."""
        self._serving = serving
        self._arriving_requests = arriving_requests
        self._report_cached = report_cached
        self._engine = engine
        self._encoder = encoder
        self._info = info
        self._wall_clock = wall_clock
        # One thread: the tokenizer releases the interpreter lock, the engine needs the other core.
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="encode")

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._route(parse_chat))
        app.router.add_post("/v1/completions", self._route(parse_completion))
        app.router.add_post("/generate", self._route(parse_generate))

    def _route(self, parse: Parse) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(http: web.Request) -> web.StreamResponse:
            if not self._serving():
                raise NoWorkerAvailable("the worker is draining")
            request = parse(decode_object(await read_body(http, BodyPace())))
            served = self._info.model
            if request.model is not None and request.model != served:
                raise UnknownModel(request.model, (served,))
            request_id = http.headers.get("x-request-id") or uuid.uuid4().hex
            answer = await self._begun(request, request_id)
            try:
                return await self._send(http, answer, request_id)
            finally:
                answer.close()

        return handle

    async def _begun(self, request: GenerationRequest, request_id: str) -> Answer:
        """Tokenized, and with the engine."""
        with self._arriving_requests.of(request.rids) as arriving:
            prompts = await self._encode(request)
            asked = Asked(
                request,
                prompts,
                request_id,
                self._info.model,
                int(self._wall_clock()),
                self._encoder.tokenizer.shown_bytes,
                self._report_cached,
            )
            answer = Answer(self._engine, asked)
        if arriving.aborted:
            answer.abort()
        return answer

    async def _encode(self, request: GenerationRequest) -> Sequence["array[int]"]:
        def encode() -> list["array[int]"]:
            return [
                encode_prompt(
                    prompt,
                    self._encoder,
                    vocab_size=self._info.vocab_size,
                    context_length=self._info.context_length,
                )
                for prompt in request.prompts
            ]

        return await asyncio.get_running_loop().run_in_executor(self._encoding, encode)

    async def _send(self, http: web.Request, answer: Answer, request_id: str) -> web.StreamResponse:
        # The status is fixed only once something has come: a refusal is an error, never a 200.
        pieces = answer.pieces()
        piece: bytes | None = await anext(pieces)
        response = web.StreamResponse(
            headers={"content-type": answer.content_type.decode(), "x-request-id": request_id}
        )
        if answer.content_type == sse.CONTENT_TYPE:
            response.headers["cache-control"] = "no-cache"
        await response.prepare(http)
        try:
            while piece is not None:
                await response.write(piece)
                piece = await anext(pieces, None)
        except RadixgateError as error:
            await response.write(error_event(error) + sse.DONE)
        await response.write_eof()
        return response
