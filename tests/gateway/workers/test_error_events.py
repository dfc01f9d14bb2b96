"""Error events as engines write them: whose fault each is."""

import pytest

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
        pytest.param({"type": "overloaded_error"}, 503, id="overloaded"),
        pytest.param({"code": 7}, 500, id="no-status"),
        pytest.param({}, 500, id="empty"),
        pytest.param("out of memory", 500, id="text"),
        pytest.param(None, 500, id="nothing"),
    ],
)
def test_an_error_tells_whose_fault_it_is(error: object, status: int) -> None:
    assert status_of(error) == status
