"""The daemon's uplink, from its settings."""

import logging
import socket
from getpass import getuser
from pathlib import Path

from brimline._version import __version__
from brimline.daemon.uplink.exchange import Uplink
from brimline.daemon.uplink.machine import load_or_create_machine_id
from brimline.daemon.uplink.outbox import Outbox
from brimline.daemon.uplink.protocol import UplinkBatch
from brimline.daemon.uplink.sender import UplinkSender
from brimline.settings import StopSettings, UplinkSettings
from brimline.store.base import Store
from brimline.store.sqlite import SqliteStore

LOGGER = logging.getLogger("brimline.uplink")


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
