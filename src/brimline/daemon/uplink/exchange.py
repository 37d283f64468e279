"""The uplink's loop: sends what changed, and stores what the server has for this machine."""

import asyncio
import logging
import random
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from getpass import getuser
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from brimline._version import __version__
from brimline.daemon.uplink.failure import UplinkFailed, clean_line
from brimline.daemon.uplink.outbox import Outbox, SessionPart
from brimline.daemon.uplink.protocol import UplinkBatch, UplinkReply, UplinkStatus
from brimline.daemon.uplink.sender import UplinkSender
from brimline.daemon.uplink.server_messages import Receiver, find_held
from brimline.files.atomic_file import replace_file
from brimline.files.bounded_dict import BoundedDict
from brimline.files.regular_file import read_regular_file
from brimline.settings import StopSettings, UplinkSettings
from brimline.store.base import Store
from brimline.store.sqlite import SqliteStore

LOGGER = logging.getLogger("brimline.uplink")

INTERVAL_S = 2.0  # between two looks for changes
POLL_INTERVAL_S = 30.0  # between two posts without changes, which ask for messages
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 20.0  # after failures; each pause is twice the last
MAX_ROWS = 2_000  # in a batch: about 0.5 MB, and 50 KB compressed
MAX_REFUSED = 100  # sessions whose refusal is shown

MACHINE_FILE = "machine"  # in the state folder
MACHINE_ID_BYTES = 16
MACHINE_ID = re.compile(r"[0-9a-f]{32}")
MAX_FILE_BYTES = 64


class BatchSender(Protocol):
    """Sends a batch to the server; `sent_bytes` counts what was sent."""

    sent_bytes: int

    async def send(self, batch: UplinkBatch) -> UplinkReply: ...

    def close(self) -> None: ...


class Uplink:
    """Exchanges batches with one server for as long as `run` runs."""

    def __init__(
        self,
        url: str,
        about: UplinkBatch,
        store: Store,
        outbox: Outbox,
        sender: BatchSender,
        clock: Callable[[], float] = time.time,
        first_pause_s: float = FIRST_PAUSE_S,
        may_block_stop: bool = False,
        renew_id: Callable[[], str] | None = None,
    ) -> None:
        """`about` is a batch without sessions: who this machine is, and what it accepts.

        `may_block_stop`: a message of the server may keep a turn from ending. `renew_id` stores
        another id for this machine, and returns it.
        """
        self._url, self._about = url, about
        self._store, self._outbox, self._sender, self._clock = store, outbox, sender, clock
        self._first_pause_s = first_pause_s
        self._renew_id = renew_id
        self._max_rows = MAX_ROWS
        self._last_stamp = 0  # the highest that was sent, or that the server had at first
        host = urlsplit(url).hostname or "unknown"
        self._receiver = Receiver(store, about.receive, host, may_block_stop)
        self._refused = BoundedDict[str, str](MAX_REFUSED)
        self._failure_reason: str | None = None
        self._last_success_at: float | None = None
        self._behind = 0
        self._behind_since: float | None = None
        self._batches = self._failures = self._calls = 0

    def status(self) -> UplinkStatus:
        since = self._behind_since
        return UplinkStatus(
            url=self._url,
            behind=self._behind,
            lag_s=0.0 if since is None else max(0.0, self._clock() - since),
            last_success_at=self._last_success_at,
            problem=self._failure_reason,
            batches=self._batches,
            failures=self._failures,
            calls=self._calls,
            sent_bytes=self._sender.sent_bytes,
            received=self._receiver.received,
            receive=self._about.receive,
            refused=self._receiver.refused,
            refusal=self._receiver.refusal,
            refused_sessions=dict(self._refused),
        )

    async def run(self) -> None:
        """Exchange forever; what fails is tried again after a pause that grows."""
        try:
            await self._receiver.cancel_unaccepted(self._clock())
            await self._run()
        finally:
            self._sender.close()

    async def _run(self) -> None:
        pause_s = self._first_pause_s
        while True:
            try:
                await self.exchange()
            except UplinkFailed as error:
                self.note_failure(error)
                # With jitter: all machines of a fleet lose a server at the same moment.
                jittered_s = pause_s * random.uniform(0.5, 1.0)
                await asyncio.sleep(max(jittered_s, error.retry_after_s))
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            else:
                pause_s = self._first_pause_s
                await asyncio.sleep(INTERVAL_S)

    async def exchange(self) -> None:
        """Send everything that changed; ask for messages if that is due; raises UplinkFailed."""
        await self._begin_round()
        must_ask = self._is_poll_due()
        while (parts := await self._outbox.next_batch(self._max_rows, self._clock())) or must_ask:
            must_ask = False
            try:
                await self._post(parts)
            except UplinkFailed as error:
                if not parts or not (error.is_refused or error.is_too_large):
                    raise
                await self._send_less(parts, error)
        await self._outbox.end_round()
        self._behind, self._behind_since = 0, None

    async def _begin_round(self) -> None:
        self._behind = await self._outbox.begin_round()
        if self._behind and self._behind_since is None:
            self._behind_since = self._clock()

    def _is_poll_due(self) -> bool:
        last = self._last_success_at
        return last is None or not 0 <= self._clock() - last < POLL_INTERVAL_S

    async def _post(self, parts: Sequence[SessionPart]) -> None:
        stamp = self._outbox.next_stamp(self._clock())
        batch = replace(
            self._about,
            sessions=[part.outgoing for part in parts],
            delivered=[id for part in parts for id in part.delivered],
            held=find_held(await self._store.pending_messages()),
            documents=sorted(self._receiver.documents),
            refused=list(self._receiver.refused_ids),
            is_first=self._last_success_at is None,
            stamp=stamp,
            behind=self._behind,
            refused_sessions=len(self._refused),
        )
        known_stamp = self._last_stamp
        if parts:
            self._last_stamp = stamp
        reply = await self._sender.send(batch)
        # It has this batch's own stamp if the connection ended, and the batch was sent twice.
        if reply.stamp != stamp:
            self._note_stamp(reply.stamp or 0, known_stamp)
        self._receiver.refused_ids.clear()
        await self._receiver.store_reply(reply, self._clock())
        if reply.stamp is not None and reply.stamp < self._outbox.stamp:
            await self._start_over(stamp if parts else reply.stamp)
        else:
            self._acknowledge(parts, stamp, reply.refused)
        self._max_rows = min(2 * self._max_rows, MAX_ROWS)
        self._batches += 1
        self._calls += sum(len(each.calls) for each in batch.sessions)
        self._last_success_at = self._clock()
        if self._failure_reason is not None:
            LOGGER.warning("%s: the fleet's server takes batches again", self._url)
            self._failure_reason = None

    def _acknowledge(
        self, parts: Sequence[SessionPart], stamp: int, refused: Mapping[str, str]
    ) -> None:
        self._outbox.acknowledge(parts, stamp)
        self._behind -= sum(part.is_last for part in parts)
        for part in parts:
            self._refused.pop(part.session.id, None)
            if (reason := refused.get(part.session.id)) is not None:
                self._skip(part, reason)

    def _note_stamp(self, stamp: int, known: int) -> None:
        """Take another id if the server has a stamp that this machine has not sent.

        Another one sends it, whose home was copied. After a restore the server would have the
        stamps of one of them, and the other one would not notice what is lost. This happens once:
        a server that is wrong about the stamps must not see a new machine in each batch.
        """
        if self._last_success_at is not None and stamp > known and self._renew_id is not None:
            text = "%s: another machine reports with the id of this one, which gets a new id"
            LOGGER.warning(text, self._url)
            renew_id, self._renew_id = self._renew_id, None
            self._about = replace(self._about, machine=renew_id())
        self._last_stamp = max(self._last_stamp, stamp)

    async def _start_over(self, stamp: int) -> None:
        text = "%s has lost what it acknowledged, as if restored from a backup; sending it again"
        LOGGER.warning(text, self._url)
        await self._outbox.start_over(stamp, self._clock())
        await self._begin_round()

    async def _send_less(self, parts: Sequence[SessionPart], error: UplinkFailed) -> None:
        """Send smaller batches, until the one session that the server refuses is skipped."""
        if len(parts) == 1 and len(parts[0].rows) <= 1:
            if not error.is_refused:  # a proxy takes nothing at all
                raise error
            self._skip(parts[0], str(error))
            return
        self._max_rows = max(1, min(self._max_rows, sum(len(each.rows) for each in parts)) // 2)
        await self._begin_round()

    def _skip(self, part: SessionPart, reason: str) -> None:
        text = "the fleet's server refuses session %s until it changes again: %s"
        LOGGER.warning(text, clean_line(part.session.id), clean_line(reason))
        self._refused[part.session.id] = clean_line(reason)
        self._outbox.skip(part)

    def note_failure(self, error: UplinkFailed) -> None:
        """Log a problem once, until there is another one or none."""
        self._failures += 1
        if self._failure_reason != str(error):
            self._failure_reason = str(error)
            LOGGER.warning("%s: %s; will retry", self._url, error)


def create_uplink(
    settings: UplinkSettings, stop: StopSettings, opened: Store, store: Store, state: Path
) -> Uplink | None:
    """Return the uplink, None if none is set; `store` is how the daemon writes to `opened`."""
    if settings.url is None:
        return None
    if not isinstance(opened, SqliteStore):
        LOGGER.warning("uplink.url is ignored: this daemon keeps its sessions in daemon.database")
        return None
    about = UplinkBatch(
        machine=load_or_create_machine_id(state),
        host=socket.gethostname(),
        version=__version__,
        user=_user_name(settings),
        team=settings.team,
        receive=settings.receive,
    )
    url = settings.url.rstrip("/")
    outbox = Outbox(opened, settings, url)
    sender = UplinkSender(settings, url, state)
    return Uplink(
        url,
        about,
        store,
        outbox,
        sender,
        may_block_stop=stop.from_servers,
        renew_id=lambda: create_machine_id(state),
    )


def _user_name(settings: UplinkSettings) -> str | None:
    if settings.user is not None:
        return settings.user or None
    try:
        return getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return None


def load_or_create_machine_id(state: Path) -> str:
    """Return the id in the state folder, which only one daemon uses; raises OSError.

    It is random, created once, and not the name of the host.
    """
    try:
        data = read_regular_file(state / MACHINE_FILE, MAX_FILE_BYTES, follow_links=False)
        text = data.strip().decode()
    except (FileNotFoundError, UnicodeDecodeError):
        text = ""
    return text if MACHINE_ID.fullmatch(text) else create_machine_id(state)


def create_machine_id(state: Path) -> str:
    """Store a new id in the state folder, and return it; raises OSError."""
    id = secrets.token_hex(MACHINE_ID_BYTES)
    replace_file(state / MACHINE_FILE, id.encode() + b"\n")
    return id
