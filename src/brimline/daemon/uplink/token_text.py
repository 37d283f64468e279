"""The texts of a fleet's tokens: 256 random bits, of which a server stores a hash.

An enrolment token says by its text that it is one: a machine that has it makes one of its own.
"""

import re
import secrets
from hashlib import sha256

PREFIX = "brim_"
ENROLMENT_PREFIX = f"{PREFIX}enrol_"
TOKEN_BYTES = 32
TEXT_PATTERN = re.compile(PREFIX + r"(?:enrol_)?[A-Za-z0-9_-]{43}")


def create_text(prefix: str = PREFIX) -> str:
    return prefix + secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def is_enrolment_token(text: str) -> bool:
    return text.startswith(ENROLMENT_PREFIX) and TEXT_PATTERN.fullmatch(text) is not None
