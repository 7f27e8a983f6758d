"""Errors in the shape of OpenAI's API, so that its clients raise the exceptions that they raise there."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A call that ends with an error.

    Attributes:
        status: the HTTP status.
        body: the response, ``{"error": {"message", "type", "param", "code"}}``.
        headers: further headers; clients of OpenAI obey ``x-should-retry``.
    """

    def __init__(self, status: int, body: dict[str, Any], *, retry: bool = True) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body
        self.headers = {} if retry else {"x-should-retry": "false"}


class UpstreamError(ApiError):
    """The upstream's answer after all retries. A plug-in may raise it, with a status and a body."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(status, body, retry=False)  # the gateway has retried already


def error_body(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Return an error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def bad_request(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> ApiError:
    """Return the error of a request that is malformed or not allowed."""
    return ApiError(status, error_body(message, "invalid_request_error", param=param, code=code))


def bad_key(message: str) -> ApiError:
    """Return the error of a missing or wrong key."""
    return bad_request(message, code="invalid_api_key", status=401)


def unknown_model(name: str) -> ApiError:
    """Return the error of a model that does not exist or is not allowed."""
    message = f"The model `{name[:200]}` does not exist or you do not have access to it."
    return bad_request(message, "model", "model_not_found", status=404)


def over_budget(message: str) -> ApiError:
    """Return the error of a call that the budget does not cover."""
    message = f"You exceeded your current quota: {message}"
    return ApiError(429, error_body(message, "insufficient_quota", code="insufficient_quota"), retry=False)


def internal(message: str = "the gateway failed; its stderr says why", status: int = 500) -> ApiError:
    """Return the error of a failure of the gateway itself."""
    return ApiError(status, error_body(message, "server_error"), retry=False)


def upstream_failed(message: str, status: int = 502) -> UpstreamError:
    """Return the error of an upstream that did something else than to answer."""
    return UpstreamError(status, error_body(message, "server_error", code="upstream_failed"))
