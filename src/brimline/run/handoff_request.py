"""The handoff between two windows of a run: asked for, waited for, or drafted, and its prompt."""

import time
from typing import Protocol

import msgspec

from brimline.handoff.truncate import UTF8
from brimline.handoff.user_messages import CONTINUED_TEXT

POLL_S = 0.5  # how often we ask whether the document is there
MAX_PROMPT_BYTES = 100_000  # Linux takes 128 KiB for a word of a command
MAX_TASK_BYTES = 20_000
TITLE_CHARS = 60
MAX_EARLIER_BYTES = 8_000  # of the handoff before, behind a draft
GAP = "\n[...]\n"

REQUEST = (
    "Your context is at {percent:.0f}% of its limit, and will not be compacted: a new session "
    "continues your work. Write a handoff document now (the task, what is done, what is open, "
    "where to look), save it with `brimline handoff FILE`, and then end your turn."
)


class RunSession(msgspec.Struct, frozen=True):
    """A session of an agent."""

    agent: str
    id: str


class Delivery(msgspec.Struct, frozen=True):
    """A message that was queued; `problem` says why nothing will deliver it."""

    id: str | None = None
    problem: str | None = None


class HandoffService(Protocol):
    """What asks an agent for a handoff, and knows what came; no method raises or waits long."""

    def ask(self, session: RunSession, text: str) -> Delivery:
        """Queue an urgent message for the agent."""
        ...

    def withdraw(self, session: RunSession, message: str) -> None:
        """Cancel the message, if it is still pending."""
        ...

    def find_document(self, session: RunSession, since: float) -> str | None:
        """Return what the agent handed over since a time."""
        ...

    def draft(self, session: RunSession) -> str | None:
        """Return a draft from the session's transcript; None without one."""
        ...

    def continue_session(self, session: RunSession, other: RunSession) -> None:
        """Record that a session continues as another, which gets its pins and messages."""
        ...

    def has_progress(self, session: RunSession) -> bool:
        """Whether the agent edited a file or replied, by its transcript; True if unknown."""
        ...


class HandoffRequest:
    """One request to an agent; `document` is what it handed over since then."""

    def __init__(self, service: HandoffService, session: RunSession, percent: float) -> None:
        self._service, self._session = service, session
        self._since = time.time()
        self._poll_at = time.monotonic() + POLL_S
        self.document: str | None = None
        self.delivery = service.ask(session, REQUEST.format(percent=percent))

    def poll(self) -> None:
        """Look for the document, if it is time."""
        if self.document is None and time.monotonic() >= self._poll_at:
            self._poll_at = time.monotonic() + POLL_S
            self.document = self._service.find_document(self._session, self._since)

    def close(self) -> None:
        """Look for the document once more, and withdraw the request if there is none."""
        if self.document is None:
            self.document = self._service.find_document(self._session, self._since)
        if self.document is None and self.delivery.id is not None:
            self._service.withdraw(self._session, self.delivery.id)


def continuation_text(document: str, task: str | None, window: int) -> str:
    """Return the prompt of a session that continues from a document; `task` is the first prompt.

    Clients take its first line as the session's title.
    """
    title = " ".join((task or "").split())[:TITLE_CHARS].strip()
    parts = [f"{title} ({window})"] if title else []
    parts += [f"{CONTINUED_TEXT} Continue from its handoff, and do not repeat what is done."]
    if task:
        shown = UTF8.elide(task, MAX_TASK_BYTES, GAP)
        parts.append(f"The task as it was given at first:\n\n{shown}")
    shown = UTF8.elide(document.strip(), MAX_PROMPT_BYTES, GAP)
    parts.append(f"----- handoff begins -----\n{shown}\n----- handoff ends -----")
    return "\n\n".join(parts)


def join_draft(draft: str, earlier: str | None) -> str:
    """Return a draft with the handoff from which its session itself began."""
    if not earlier:
        return draft
    shown = UTF8.elide(earlier.strip(), MAX_EARLIER_BYTES, GAP)
    return f"{draft.strip()}\n\n## From the handoff before this one\n\n{shown}"
