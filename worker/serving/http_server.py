"""The worker's own HTTP server: the OpenAI endpoints and SGLang's `/generate`."""

import asyncio
import uuid
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web

from radixgate.errors import NoWorkerAvailable, UnknownModel
from radixgate.proto.fields import decode_object
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import GenerationRequest, encode_prompt
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.prompt_length import check_length
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.answer import Answer, Asked
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.request_body import BodyPace, read_body
from radixgate.worker.serving.sending import send

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
                return await send(http, answer, request_id)
            finally:
                answer.close()

        return handle

    async def _begun(self, request: GenerationRequest, request_id: str) -> Answer:
        """Tokenized, and with the engine."""
        with self._arriving_requests.of(len(request.prompts), request.rids) as arriving:
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
        answer.abort(arriving.aborted)
        return answer

    async def _encode(self, request: GenerationRequest) -> Sequence["array[int]"]:
        info = self._info

        def encode() -> list["array[int]"]:
            for prompt in request.prompts:
                size = len(prompt.routing_bytes())
                check_length(prompt, size, self._encoder, info.context_length)
            return [
                encode_prompt(
                    prompt,
                    self._encoder,
                    vocab_size=info.vocab_size,
                    context_length=info.context_length,
                )
                for prompt in request.prompts
            ]

        return await asyncio.get_running_loop().run_in_executor(self._encoding, encode)
