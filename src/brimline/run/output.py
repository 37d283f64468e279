"""What a surface does with a run: where its output goes, and what people see of it."""

from typing import Protocol

from brimline.run.run_state import Track
from brimline.tracker import Reading


class Show(Protocol):
    """The part of a surface that a run calls while it runs."""

    @property
    def live(self) -> bool:
        """Whether somebody looks on, so that `glance` is to be called again and again."""
        ...

    @property
    def words(self) -> bool:
        """Whether what is shown depends on whose stream it is: it is then looked at first."""
        ...

    def begin(self, iteration: int, hat: str | None) -> None:
        """A run begins."""
        ...

    def output(self, chunk: bytes, agent: str | None) -> None:
        """The child printed something; `agent` is whose stream it is, if it is one.

        BrokenPipeError where nobody reads it any more.
        """
        ...

    def glance(self, track: Track) -> None:
        """Show how it stands."""
        ...

    def reached(self, level: float, reading: Reading, ends: bool) -> None:
        """A level was reached; `ends`: and the child is ended for it."""
        ...

    def pause(self) -> None:
        """Leave the terminal clean: we are about to be stopped."""
        ...

    def end(self) -> None:
        """The run is over: show what is left, take away what was live."""
        ...
