"""What an aiohttp server logs: faults of ours, and nothing that clients sent."""

import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError


class _NoClientFaults(logging.Filter):
    """Bytes that are no HTTP are answered with 400, and some clients leave before their answer. A
    traceback of each would let anybody fill the log, with header lines in it that may hold keys."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        faults = (HttpProcessingError, ConnectionResetError, web.RequestPayloadError)
        return not isinstance(fault, faults)


_CLIENT_FAULTS = _NoClientFaults()


def http_log(name: str) -> logging.Logger:
    """The logger of this name, to be given to the server."""
    log = logging.getLogger(name)
    log.addFilter(_CLIENT_FAULTS)  # the second time it changes nothing
    return log
