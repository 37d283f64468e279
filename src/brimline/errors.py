"""Every error that Brimline raises.

    BrimlineError
    ├── InvalidUsage          a count that cannot be: negative, no integer, missing
    ├── InvalidSettings       a settings file, variable or argument that cannot be used
    ├── UnknownAgent          a name that is no agent of ours
    ├── UnknownSession        no session has this id
    ├── UnreadableTranscript  a path that cannot be opened or is no file
    └── UnrecognisedFormat    a file or stream that is no agent's

Each says what was expected, what came, where, and what to do; the parts are attributes too.
"""

from collections.abc import Iterable


class BrimlineError(Exception):
    """The base of all; `hint` says what to do about it."""

    hint: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n{self.hint}" if self.hint else text


class InvalidUsage(BrimlineError):
    """A token count that cannot be."""

    def __init__(
        self, field: str, value: object, expected: str = "an integer of 0 or more"
    ) -> None:
        self.field, self.value, self.expected = field, value, expected
        came = "it is missing" if value is None else f"got {value!r}"
        super().__init__(f"usage field {field!r} must be {expected}: {came}")


class InvalidSettings(BrimlineError):
    """A setting that cannot be used, and the place it came from."""

    def __init__(self, place: str, field: str, problem: str) -> None:
        self.place, self.field, self.problem = place, field, problem
        super().__init__(f"{place}: {field}: {problem}")


class UnknownAgent(BrimlineError):
    """A name that is no agent of ours."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, tuple(known)
        self.hint = f"Known agents: {', '.join(self.known)}."
        super().__init__(f"unknown agent {name!r}")


class UnknownSession(BrimlineError):
    """No session has this id."""

    def __init__(self, name: str, candidates: Iterable[str] = ()) -> None:
        self.name, self.candidates = name, tuple(candidates)
        listed = ", ".join(self.candidates)
        found = f"It could be {listed}: write more of it, or say --agent." if listed else None
        self.hint = found or "`brimline status --all` lists the sessions on this machine."
        kind = (
            "more than one session begins with" if self.candidates else "no file or session named"
        )
        super().__init__(f"{kind} {name!r}")


class UnreadableTranscript(BrimlineError):
    """A path that cannot be read as a transcript."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        self.path, self.reason, self.hint = path, reason, hint
        super().__init__(f"cannot read {path}: {reason}")


class UnrecognisedFormat(BrimlineError):
    """A file or stream whose first lines are no agent's."""

    def __init__(self, place: str, known: Iterable[str]) -> None:
        self.place, self.known = place, tuple(known)
        self.hint = f"Say whose it is with --agent ({', '.join(self.known)})."
        super().__init__(
            f"{place}: the first lines are no transcript or stream of an agent we know"
        )
