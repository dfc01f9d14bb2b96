"""What the admin application's HTTP server logs: faults of ours, and nothing that clients sent."""

import logging

from aiohttp.http_exceptions import HttpProcessingError

_log = logging.getLogger("radixgate.gateway.admin_http")


class _NoClientFaults(logging.Filter):
    """Bytes that are no HTTP are answered with 400, and some clients leave before their answer. A
    traceback of each would let anybody fill the log, with header lines in it that may hold keys."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        return not isinstance(fault, HttpProcessingError | ConnectionResetError)


_CLIENT_FAULTS = _NoClientFaults()


def admin_log() -> logging.Logger:
    """The logger to give to the server."""
    _log.addFilter(_CLIENT_FAULTS)  # the second time it changes nothing
    return _log
