"""The daemon's uplink, from its settings and the id of this installation."""

import logging
import re
import secrets
import socket
from getpass import getuser
from pathlib import Path

from brimline._version import __version__
from brimline.daemon.uplink.exchange import Uplink
from brimline.daemon.uplink.outbox import Outbox
from brimline.daemon.uplink.protocol import UplinkBatch
from brimline.daemon.uplink.sender import UplinkSender
from brimline.files.atomic_file import replace_file
from brimline.files.regular_file import read_regular_file
from brimline.settings import StopSettings, UplinkSettings
from brimline.store.base import Store
from brimline.store.sqlite import SqliteStore

LOGGER = logging.getLogger("brimline.uplink")

MACHINE_FILE = "machine"  # in the state folder
MACHINE_ID_BYTES = 16
MACHINE_ID = re.compile(r"[0-9a-f]{32}")
MAX_FILE_BYTES = 64


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
    sender = UplinkSender(settings, url)
    return Uplink(url, about, store, outbox, sender, may_block_stop=stop.from_servers)


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
    if MACHINE_ID.fullmatch(text):
        return text
    id = secrets.token_hex(MACHINE_ID_BYTES)
    replace_file(state / MACHINE_FILE, id.encode() + b"\n")
    return id
