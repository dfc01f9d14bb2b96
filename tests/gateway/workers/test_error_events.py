"""Error events as engines write them: whose fault each is."""

import json

import pytest

from radixgate.gateway.workers.answer_json import read_event
from radixgate.gateway.workers.error_events import status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param({"message": "x", "type": "BadRequestError", "code": 400}, 400, id="vllm"),
        pytest.param({"type": "InternalServerError", "code": 500}, 500, id="vllms-own"),
        pytest.param({"type": "INTERNAL_SERVER_ERROR", "code": "500"}, 500, id="sglangs-own"),
        pytest.param({"type": "SERVICE_UNAVAILABLE", "code": 503}, 503, id="sglang-full"),
        pytest.param({"message": "the prompt is too long"}, 400, id="sglang-native"),
        pytest.param({"type": "BadRequestError"}, 400, id="a-type-alone"),
        pytest.param({"type": "invalid_request_error", "code": None}, 400, id="openai"),
        pytest.param({"code": "server_error", "message": "x"}, 500, id="responses"),
        pytest.param({"code": "invalid_prompt", "message": "x"}, 400, id="responses-prompt"),
        pytest.param({"code": "rate_limit_exceeded"}, 429, id="responses-limit"),
        pytest.param({"code": "context_length_exceeded"}, 400, id="too-long"),
        pytest.param({"code": "content_filter"}, 400, id="filtered"),
        pytest.param({"code": "content_policy_violation"}, 400, id="against-a-policy"),
        pytest.param({"code": "lock_contention"}, 500, id="no-content"),
        pytest.param({"code": "image_parse_error"}, 400, id="a-bad-image"),
        pytest.param({"type": "authentication_error"}, 400, id="no-key"),
        pytest.param({"type": "permission_error"}, 400, id="not-allowed"),
        pytest.param({"type": "PermissionDeniedError"}, 400, id="not-allowed-as-vllm"),
        pytest.param({"type": "overloaded_error"}, 503, id="overloaded"),
        pytest.param({"code": 7}, 500, id="no-status"),
        pytest.param({}, 500, id="empty"),
        pytest.param("out of memory", 500, id="text"),
        pytest.param(None, 500, id="nothing"),
    ],
)
def test_an_error_tells_whose_fault_it_is(error: object, status: int) -> None:
    assert status_of(error) == status


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("server_error", 500, id="the-workers"),
        pytest.param("vector_store_timeout", 500, id="of-a-store"),
        pytest.param("internal_error", 500, id="another-servers"),
        pytest.param("rate_limit_exceeded", 429, id="busy"),
        pytest.param("503", 503, id="a-status"),
        pytest.param(None, 500, id="none"),
        pytest.param("invalid_prompt", 400, id="invalid"),
        pytest.param("bio_policy", 400, id="of-no-known-words"),
        pytest.param("image_too_large", 400, id="large"),
        pytest.param("image_parse_error", 400, id="unread"),
        pytest.param("unsupported_image_media_type", 400, id="media"),
        pytest.param("empty_image_file", 400, id="empty"),
        pytest.param("image_content_policy_violation", 400, id="policy"),
        pytest.param("failed_to_download_image", 400, id="not-there"),
    ],
)
def test_of_responses_the_codes_are_known(code: object, status: int) -> None:
    error = {"code": code, "message": "x"}
    failed = {"type": "response.failed", "response": {"error": error}}
    for data in (failed, {"type": "error", **error}):
        event = read_event(json.dumps(data).encode())
        assert event is not None
        assert event.error_status == status
