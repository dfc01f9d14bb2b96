"""The one error tree: each error knows its HTTP status and the field it is about."""

from collections.abc import Iterable


class RadixgateError(Exception):
    """Root of everything radixgate raises on purpose.

    ``status`` is the HTTP status a client sees, ``kind`` the ``type`` and ``code`` of the OpenAI
    error object, ``param`` the request field at fault (None: no single field is).
    """

    status = 500
    kind = "internal_error"
    code: str | None = None
    # Seconds after which a retry makes sense; None means no Retry-After header is sent.
    retry_after_s: float | None = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InternalFault(RadixgateError):
    """A fault of our own, caught where it struck; no worker is to blame, and no client."""

    def __init__(self, message: str = "internal error; the log has the details") -> None:
        super().__init__(message)


class OutOfFiles(InternalFault):
    """The system lets this process open no more files, of which each connection is one."""

    status = 503
    kind = "service_unavailable"
    retry_after_s = 1.0


class ConfigError(RadixgateError):
    """A flag, a file or a combination of settings that cannot work; names both sides."""

    kind = "config_error"


class RequestError(RadixgateError):
    """The client's request is wrong; nothing was sent to a worker, a retry will fail again."""

    status = 400
    kind = "invalid_request_error"

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message, param=param)
        self.code = code


class UnknownModel(RequestError):
    """The model named in the request is served by no worker; the message lists those that are."""

    status = 404

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"no worker serves the model {name!r:.200}; there are: {', '.join(sorted(known))}",
            param="model",
            code="model_not_found",
        )


class UnknownResponse(RequestError):
    """The stored response that the request names is nobody's, or not the caller's."""

    status = 404

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"there is no response {response_id!r:.300}",
            param="previous_response_id",
            code="response_not_found",
        )


class Unauthorized(RequestError):
    """No key, or one that is not known."""

    status = 401


class Forbidden(RequestError):
    """A known key that does not open this."""

    status = 403


class PayloadTooLarge(RequestError):
    """The body is over the configured limit."""

    status = 413


class EncodedBody(RequestError):
    """The body is compressed, or encoded in another way, and nobody here decodes it."""

    status = 415


class RequestTimeout(RequestError):
    """The client took too long to send its request."""

    status = 408


class Conflict(RequestError):
    """What is asked for does not fit with what is there."""

    status = 409


class DuplicateRequest(RequestError):
    """A live request already has this rid; a finished one's may be used again."""

    status = 409


class GatewayError(RadixgateError):
    """The gateway could not get an answer for a request that may be right."""

    status = 502
    kind = "upstream_error"


class NoWorkerAvailable(GatewayError):
    """No healthy worker can take the request now; the client may retry."""

    status = 503
    kind = "service_unavailable"
    retry_after_s = 1.0


class QueueFull(RadixgateError):
    """The worker has as many requests waiting as it may; the client may retry."""

    status = 503
    kind = "service_unavailable"
    retry_after_s = 1.0


class TooManyRequests(RadixgateError):
    """The gateway takes no more for now, of this tenant or at all; the client may retry."""

    status = 429
    kind = "rate_limit_error"
    code = "rate_limit_exceeded"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class WorkerFailed(GatewayError):
    """A worker broke off: refused, reset, timed out, or answered nonsense; the client may retry."""

    retry_after_s = 1.0
    rest_s = 0.0  # for so long it is known to take nothing: who else is there is asked


class WorkerBusy(WorkerFailed):
    """A worker of ours takes no more for now: no sign of a fault."""

    status = 503
    kind = "service_unavailable"
    retry_after_s = 1.0


class WorkerUnreachable(WorkerFailed):
    """Nobody listens at the worker's address: no connection comes about."""


class WorkerRefused(GatewayError):
    """A worker answered with an error of its own; status and message pass through."""

    def __init__(self, message: str, *, status: int, param: str | None = None) -> None:
        super().__init__(message, param=param)
        self.status = status
        self.kind = "invalid_request_error" if 400 <= status < 500 else "upstream_error"


class ModelError(RadixgateError):
    """Weights, tokenizer or template that cannot be used; names the tensor or the key."""

    kind = "model_error"


class NativeUnavailable(RadixgateError):
    """The C++ kernels cannot be compiled or loaded here; all they do can be done without them."""

    kind = "native_error"


class ProcessFailed(RadixgateError):
    """A program that we started ended too early or never became ready; ends with its last lines."""

    kind = "process_error"
