"""What a line of an agent's stream says beside its usage: words, tools, and how it came out."""

from typing import Literal, Protocol, TypeAlias

import msgspec

from brimline.usage import Usage

Kind: TypeAlias = Literal["text", "tool", "error"]


class Said(msgspec.Struct, frozen=True):
    """Something for people: the agent's own words, a tool that it uses, an error.

    `open`: a piece of a text, more may come; `goes_on`: it belongs right behind the one before it.
    """

    kind: Kind
    text: str
    detail: str = ""
    goes_on: bool = False
    open: bool = False


class Told(msgspec.Struct, frozen=True):
    """What one line tells; `cost`, `turns` and `billed` are to be added up over the run.

    `failed` is the client's own word on how it came out, the last one counts.
    """

    said: tuple[Said, ...] = ()
    cost: float | None = None
    turns: int | None = None
    failed: bool | None = None
    billed: Usage | None = None


QUIET = Told()


class Ear(Protocol):
    """Hears what one agent's stream says, line by line."""

    @property
    def idle(self) -> tuple[bytes, ...]:
        """A line that begins like one of these tells nothing, and no usage either.

        They are the bulk of some streams, and need not even be decoded.
        """
        ...

    @property
    def signs(self) -> tuple[bytes, ...]:
        """One of these stands in every line that tells how a run came out."""
        ...

    def hear(self, line: bytes) -> Told:
        """What a line tells. Raises msgspec.DecodeError where it is no line of this agent's."""
        ...


def brief(arguments: msgspec.Raw) -> str:
    """A tool's arguments in a few words: the first text among them, without its line breaks."""
    try:
        values = msgspec.json.decode(arguments, type=dict[str, object]).values()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    return " ".join(next((value for value in values if isinstance(value, str)), "").split())
