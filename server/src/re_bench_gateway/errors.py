"""Errors as OpenAI's API words them, so that its clients raise what they would raise there."""

from __future__ import annotations

from typing import Any

_DO_NOT_RETRY = {"x-should-retry": "false"}  # what clients of OpenAI's obey


class ApiError(Exception):
    """A call that ends with an error.

    Attributes:
        status: of HTTP.
        body: the response, ``{"error": {"message", "type", "param", "code"}}``.
        headers: further headers.
    """

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body
        self.headers = headers or {}


class UpstreamError(ApiError):
    """The upstream's last word to a call, after all retries. A plug-in may raise it, with a status and a body."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(status, body, _DO_NOT_RETRY)  # the gateway has tried as often as it makes sense


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Return an error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error of a request that cannot be understood or is not allowed."""
    return ApiError(400, error_body(message, "invalid_request_error", param=param, code=code))


def bad_key(message: str) -> ApiError:
    """Return the error of a missing or wrong key."""
    return ApiError(401, error_body(message, "invalid_request_error", code="invalid_api_key"))


def unknown_url(method: str, path: str) -> ApiError:
    """Return the error of a route that does not exist."""
    message = f"Unknown request URL: {method} {path[:200]}"
    return ApiError(404, error_body(message, "invalid_request_error", code="unknown_url"))


def unknown_model(name: str) -> ApiError:
    """Return the error of a model that does not exist or is not allowed."""
    message = f"The model `{name[:200]}` does not exist or you do not have access to it."
    return ApiError(404, error_body(message, "invalid_request_error", param="model", code="model_not_found"))


def over_budget(message: str) -> ApiError:
    """Return the error of a call that the budget does not cover."""
    body = error_body(message, "insufficient_quota", code="insufficient_quota")
    return ApiError(429, body, _DO_NOT_RETRY)


def too_slow(message: str) -> ApiError:
    """Return the error of a request that does not arrive."""
    return ApiError(408, error_body(message, "invalid_request_error", code="request_timeout"))


def too_busy(message: str) -> ApiError:
    """Return the error of a call for which there is no room yet; clients try it again."""
    return ApiError(429, error_body(message, "requests", code="rate_limit_exceeded"))


def internal(message: str = "the gateway failed; its stderr says why") -> ApiError:
    """Return the error of a failure of ours."""
    return ApiError(500, error_body(message, "server_error"), _DO_NOT_RETRY)


def ending() -> ApiError:
    """Return the error of a call that our own end has cut off."""
    return ApiError(503, error_body("the gateway has ended", "server_error"), _DO_NOT_RETRY)
