"""Responses to failures of the database: its address and its errors are for the log."""

from starlette.requests import Request
from starlette.responses import Response

from brimline.api.responses import RETRY_HINT, json_response
from brimline.api.schemas import Problem
from brimline.daemon.log_limit import RateLimitedLog
from brimline.daemon.retry import is_transient
from brimline.errors import StoreFailed

NO_DATABASE = "the server's database does not answer"


class StoreFailures:
    """Answers requests that failed by the database, and logs why, each reason once an hour."""

    def __init__(self) -> None:
        self._log = RateLimitedLog()

    async def respond(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, StoreFailed)
        if not is_transient(error):  # a value of the request
            return json_response(Problem(error.reason), 422)
        self._log.warn("requests fail", error)
        return json_response(Problem(NO_DATABASE, RETRY_HINT), 503)
