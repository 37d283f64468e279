"""The token for batches: that of the settings, or one that this machine makes from its team's.

With an enrolment token in the settings, the machine makes a random token, keeps it in the state
folder, and has the server store its hash. So its text is never in a reply, and a request whose
reply was lost is repeated without a second token.
"""

import asyncio
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from brimline.daemon.http_client import HttpClient, HttpFailed
from brimline.daemon.secret import read_token_file
from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.protocol import (
    ENROL_PATH,
    MachineEnrolled,
    MachineEnrolment,
    ServerProblem,
    UplinkBatch,
)
from brimline.daemon.uplink.token_text import create_text, hash_token, is_enrolment_token
from brimline.files.atomic_file import replace_file
from brimline.files.bounded_reads import SHARED_READS
from brimline.files.foreign_json import JsonDecoder
from brimline.files.regular_file import read_regular_file
from brimline.settings import UplinkSettings

OWN_TOKEN_FILE = "uplink-token"  # in the state folder
MAX_FILE_BYTES = 1 << 10
TOKEN_WAIT_S = 5.0
ENROL_TIMEOUT_S = 30.0
MAX_RETRY_AFTER_S = 600.0
NEW_TOKEN = "set uplink.token to one of `brimline token create --scope enrol`, or `ingest`"


class OwnToken(msgspec.Struct, frozen=True):
    """A token that this machine has made.

    `made_for` is a hash of the server, the machine and the enrolment token; `is_stored` if the
    server has confirmed that it knows it. `earlier` is the hash of the last one before of which a
    server did: it shows another enrolment that this is the same machine.
    """

    text: str
    made_for: str
    is_stored: bool = False
    earlier: str | None = None


_own_tokens = JsonDecoder(OwnToken)
_problems = JsonDecoder(ServerProblem)
_replies = JsonDecoder(MachineEnrolled)


class MachineToken:
    """Finds the token for a batch to one server."""

    def __init__(self, settings: UplinkSettings, url: str, client: HttpClient, state: Path) -> None:
        self._settings, self._url, self._client = settings, url, client
        self._path = state / OWN_TOKEN_FILE
        self._own: OwnToken | None = None

    async def find(self, batch: UplinkBatch) -> str:
        """Return the token, of which the server knows the hash; raises UplinkFailed."""
        token = await self._read_setting()
        return await self._own_token(token, batch) if is_enrolment_token(token) else token

    def note_unknown(self) -> None:
        """Enrol again with the next batch: a server that was restored does not know the token."""
        if self._own is not None:
            self._own = replace(self._own, is_stored=False)

    async def _read_setting(self) -> str:
        """Return the user's token; a file is read for each batch, so that it can be replaced."""
        if self._settings.token is not None:
            return self._settings.token
        if self._settings.token_file is None:
            raise UplinkFailed(f"there is no token: {NEW_TOKEN}")
        read = partial(read_token_file, self._settings.token_file)
        try:
            return await SHARED_READS.run(read, TOKEN_WAIT_S)
        except (OSError, UnicodeDecodeError) as error:  # a TimeoutError is an OSError
            raise UplinkFailed(f"uplink.token_file cannot be read: {error}") from error

    async def _own_token(self, enrolment_token: str, batch: UplinkBatch) -> str:
        made_for = hash_token(f"{self._url} {batch.machine} {enrolment_token}")
        try:
            own = self._own or await asyncio.to_thread(self._read)
            if own is None or own.made_for != made_for:
                own = OwnToken(create_text(), made_for, earlier=_find_earlier(own))
                await asyncio.to_thread(self._write, own)
            if not own.is_stored:
                await self._enrol(enrolment_token, own, batch)
                own = replace(own, is_stored=True)
                await asyncio.to_thread(self._write, own)
        except OSError as error:
            raise UplinkFailed(f"this machine's token cannot be kept: {error}") from error
        self._own = own
        return own.text

    async def _enrol(self, enrolment_token: str, own: OwnToken, batch: UplinkBatch) -> None:
        """Have the server store the hash of the machine's token; raises UplinkFailed."""
        hash = hash_token(own.text)
        enrolment = MachineEnrolment(batch.machine, hash, batch.host, own.earlier)
        headers = {
            "Authorization": f"Bearer {enrolment_token}",
            "Content-Type": "application/json",
        }
        body = msgspec.json.encode(enrolment)
        try:
            reply = await self._client.post(body, headers, ENROL_PATH, ENROL_TIMEOUT_S)
        except HttpFailed as error:
            raise UplinkFailed(f"the server cannot be reached: {error}") from error
        if not reply.is_success:
            problem = _problems.decode_or_none(reply.body)
            reason = f"HTTP status {reply.status}"
            if problem is not None:
                reason = ". ".join(filter(None, (problem.error, problem.hint))).rstrip(".")
            raise UplinkFailed(
                f"the server does not enrol this machine: {reason}",
                reply.retry_after_s(MAX_RETRY_AFTER_S),
            )
        answer = _replies.decode_or_none(reply.body)
        if answer is None or answer.machine != batch.machine:
            raise UplinkFailed("the reply is not that of a fleet's server: check uplink.url")

    def _read(self) -> OwnToken | None:
        try:
            data = read_regular_file(self._path, MAX_FILE_BYTES, follow_links=False)
        except FileNotFoundError:
            return None
        return _own_tokens.decode_or_none(data)

    def _write(self, own: OwnToken) -> None:
        replace_file(self._path, msgspec.json.encode(own) + b"\n", sync=True)


def _find_earlier(own: OwnToken | None) -> str | None:
    if own is None:
        return None
    return hash_token(own.text) if own.is_stored else own.earlier
