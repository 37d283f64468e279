"""The id of an installation: random, created once, and not the name of the host."""

import re
import secrets
from pathlib import Path

from brimline.files.atomic_file import replace_file
from brimline.files.regular_file import read_regular_file

NAME = "machine"
ID_BYTES = 16
ID = re.compile(r"[0-9a-f]{32}")
MAX_FILE_BYTES = 64


def load_or_create_machine_id(state: Path) -> str:
    """Return the id in the state folder, which only one daemon uses; raises OSError."""
    try:
        text = read_regular_file(state / NAME, MAX_FILE_BYTES, follow_links=False).strip().decode()
    except (FileNotFoundError, UnicodeDecodeError):
        text = ""
    if ID.fullmatch(text):
        return text
    id = secrets.token_hex(ID_BYTES)
    replace_file(state / NAME, id.encode() + b"\n")
    return id
