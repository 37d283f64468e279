"""Every error that Brimline raises.

    BrimlineError
    ├── InvalidUsage          a token count that is negative, missing or not an integer
    │   └── SummedUsage           the usage of several calls, which is no occupancy
    ├── MalformedJson         JSON of another program that cannot be decoded
    │   └── UnexpectedJson        valid JSON of another shape
    ├── InvalidSettings       a settings file, variable or argument that cannot be used
    ├── UnknownAgent          not the name of a known agent
    ├── UnknownSession        no session, or more than one, matches this id
    ├── UnreadableTranscript  a path that cannot be read as a transcript
    ├── WorkerFailed          a process that read transcripts died
    ├── UnrecognisedFormat    a file or stream of no known agent
    ├── UnrecognisedObject    an object without usage in a known shape
    ├── InvalidState          a stored tracker or policy that cannot be restored
    ├── InvalidPolicy         a level or policy with an impossible value
    ├── BaselineFailed        a client that did not report its baseline
    ├── CommandFailed         a command that could not be started, or failed
    ├── UnsafeFolder          a folder of ours that other users can change
    ├── AlreadyRunning        the daemon's lock or port is in use
    ├── NotRunning            the daemon does not answer
    │   └── DaemonUnresponsive    a process holds its lock but does not answer (server.sockets)
    ├── InvalidRequest        a request that the daemon or a command refuses
    ├── InvalidHandoff        a file that cannot be used as a handoff
    ├── StoreFailed           a store that could not read or write
    ├── NewerStore            a store of a newer version
    ├── InvalidFrame          bytes on the hook socket that are no frame (hooks.protocol)
    │
    │   These are caught inside their package and never reach a caller:
    ├── RequestRefused        a request that gets an error response (server.api.responses)
    ├── HttpFailed            a request to another server that got no answer (http_client)
    ├── CollectorBusy         telemetry that a collector may take later (server.export.collector)
    ├── UplinkFailed          a batch that the fleet's server did not take (uplink.failure)
    ├── TransportFailed       a notice that could not be sent (notify.transports)
    ├── RpcError              a request of an MCP client that gets an error response (cli.mcp)
    ├── TooMuchToRead         unread transcripts of more bytes than allowed (sessions.thread_parts)
    ├── ClientTimeout         a client that did not answer in time (baselines.process)
    └── Unanswered            a client that rejected a request, or ended (baselines.request)

Each message says what was expected, what came and where; `hint` says what to do. The parts are
attributes too.
"""

from collections.abc import Iterable
from typing import Any


def suggest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a mistyped one is most like, if any is near enough."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, n=1, cutoff=0.8)), None)


class BrimlineError(Exception):
    """Base of all errors; `hint` says what to do about it."""

    hint: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Without it, pickle would call the class with the message alone: a process pool breaks.
        return _restore_error, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nhint: {self.hint}" if self.hint else text


def _restore_error(kind: type[BrimlineError], args: tuple[object, ...]) -> BrimlineError:
    return kind.__new__(kind, *args)


class InvalidUsage(BrimlineError):
    """A token count that is negative, missing or not an integer, or a usage of no single call."""

    def __init__(
        self,
        field: str,
        value: object,
        expected: str = "an integer of 0 or more",
        hint: str | None = None,
    ) -> None:
        self.field, self.value, self.expected, self.hint = field, value, expected, hint
        came = "it is missing" if value is None else f"got {value!r}"
        super().__init__(f"usage field {field!r} must be {expected}: {came}")


class SummedUsage(InvalidUsage):
    """The usage of several calls, as of a whole run: it is no occupancy."""

    def __init__(self, field: str, value: int | None = None, hint: str | None = None) -> None:
        super().__init__(field, value, "the usage of one call", hint)
        got = field if value is None else f"{field} is {value}"
        self.args = (f"a sum of several requests is no occupancy: {got}",)


class MalformedJson(BrimlineError):
    """JSON of another program that cannot be decoded."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class UnexpectedJson(MalformedJson):
    """Valid JSON of another program that has another shape."""


class InvalidSettings(BrimlineError):
    """A setting that cannot be used, and where it came from."""

    def __init__(self, place: str, field: str, problem: str) -> None:
        self.place, self.field, self.problem = place, field, problem
        about = f"argument {field}" if place == "argument" else f"{place}: {field}"
        super().__init__(f"{about}: {problem}")


class UnknownAgent(BrimlineError):
    """Not the name of a known agent."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, tuple(known)
        near = suggest(name.lower(), self.known)
        listed = f"Known agents: {', '.join(self.known)}."
        self.hint = f"Did you mean {near}? {listed}" if near else listed
        super().__init__(f"unknown agent {name!r}")


class UnknownSession(BrimlineError):
    """No session, or more than one, matches this id."""

    def __init__(self, name: str, candidates: Iterable[str] = (), near: str | None = None) -> None:
        self.name, self.candidates, self.near = name, tuple(candidates), near
        listed = "".join(f"\n   {candidate}" for candidate in self.candidates)
        all_listed = "`brimline status --all` lists the sessions on this machine."
        if listed:
            self.hint = "Give more of the id or title."
            super().__init__(f"more than one session matches {name!r}:{listed}")
        else:
            self.hint = f"Did you mean {near}? {all_listed}" if near else all_listed
            super().__init__(f"no file or session named {name!r}")


class UnreadableTranscript(BrimlineError):
    """A path that cannot be read as a transcript."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        self.path, self.reason, self.hint = path, reason, hint
        super().__init__(f"cannot read {path}: {reason}")


class WorkerFailed(BrimlineError):
    """A process that read transcripts died."""

    hint = (
        "It may have run out of memory: free some and try again, "
        "or read one agent at a time with --agent."
    )

    def __init__(self) -> None:
        super().__init__("a process that was reading transcripts died")


class UnrecognisedFormat(BrimlineError):
    """A file or stream of no known agent."""

    def __init__(self, place: str, known: Iterable[str], resembles: str | None = None) -> None:
        self.place, self.known, self.resembles = place, tuple(known), resembles
        self.hint = f"If it is a known agent's, name it with --agent ({', '.join(self.known)})."
        but = f". It resembles {resembles}" if resembles else ""
        super().__init__(f"{place}: unknown agent: not a transcript or stream that we read{but}")


class UnrecognisedObject(BrimlineError):
    """An object without usage in a known shape."""

    def __init__(self, kind: str, supported: Iterable[str]) -> None:
        self.kind, self.supported = kind, tuple(supported)
        self.hint = (
            "Pass the answer of the provider's own client, as frameworks keep it in `raw` or "
            f"`inner_content`, or its usage. Supported: {'; '.join(self.supported)}."
        )
        super().__init__(f"cannot observe {kind}: no usage in a known shape")


class InvalidState(BrimlineError):
    """A stored tracker or policy that cannot be restored."""

    def __init__(self, kind: str, problem: str) -> None:
        self.kind, self.problem = kind, problem
        self.hint = "Start with a new one, or store what `state()` returns."
        super().__init__(f"not a {kind} state: {problem}")


class InvalidPolicy(BrimlineError):
    """A level or policy with an impossible value."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field, self.value, self.expected = field, value, expected
        super().__init__(f"{field} must be {expected}: got {value!r}")


class BaselineFailed(BrimlineError):
    """A client that did not report its baseline."""

    def __init__(self, agent: str, reason: str, hint: str | None = None) -> None:
        self.agent, self.reason, self.hint = agent, reason, hint
        super().__init__(f"cannot get the baseline of {agent}: {reason}")


class CommandFailed(BrimlineError):
    """A command that could not be started, or failed if it `was_started`."""

    def __init__(
        self, command: str, reason: str, hint: str | None = None, was_started: bool = False
    ) -> None:
        self.command, self.reason, self.hint = command, reason, hint
        self.was_started = was_started
        failed = f"{command!r} failed" if was_started else f"cannot start {command!r}"
        super().__init__(f"{failed}: {reason}")


class InvalidRequest(BrimlineError):
    """A request that the daemon or a command refuses; `is_temporary` if it may pass later."""

    def __init__(self, error: str, hint: str | None = None, is_temporary: bool = False) -> None:
        self.error, self.hint, self.is_temporary = error, hint, is_temporary
        super().__init__(error)


class InvalidHandoff(BrimlineError):
    """A file that cannot be used as a handoff."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        self.path, self.reason, self.hint = path, reason, hint
        super().__init__(f"cannot use {path} as a handoff: {reason}")


class StoreFailed(BrimlineError):
    """The store cannot be opened, written or read; the request had no effect."""

    def __init__(self, place: str, reason: str, hint: str | None = None) -> None:
        self.place, self.reason, self.hint = place, reason, hint
        super().__init__(f"{place}: {reason}")


class NewerStore(BrimlineError):
    """A newer Brimline has written the store; it was not changed."""

    def __init__(self, place: str, found: int, known: int) -> None:
        self.place, self.found, self.known = place, found, known
        self.hint = "Update Brimline, or use another file or database."
        super().__init__(
            f"{place}: expected a store of version {known} or older, found version {found}"
        )


class UnsafeFolder(BrimlineError):
    """A folder of ours that other users can change."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        self.path, self.reason, self.hint = path, reason, hint
        super().__init__(f"{path} is not safe to use: {reason}")


class AlreadyRunning(BrimlineError):
    """The daemon's lock or port is in use."""

    def __init__(self, place: str, reason: str | None = None) -> None:
        self.place, self.reason = place, reason
        self.hint = "`brimline serve --status` shows the running daemon, `--stop` stops it."
        super().__init__(f"{place} is in use" + (f": {reason}" if reason else ""))


class NotRunning(BrimlineError):
    """The daemon does not answer."""

    hint = "`brimline serve --background` starts it."

    def __init__(self, place: str, reason: str | None = None) -> None:
        self.place = place
        details = f": {reason}" if reason else ""
        super().__init__(f"the daemon is not running (no answer at {place}{details})")
