"""What the admin application's HTTP server logs: faults of ours, and nothing that clients sent."""

import logging

from radixgate.proto.http_log import http_log


def admin_log() -> logging.Logger:
    """The logger to give to the server."""
    return http_log("radixgate.gateway.admin_http")
