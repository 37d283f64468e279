"""Anonymize recorded files: replace the paths, ids, times and names of the recording machine."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STEP = timedelta(milliseconds=100)
MAX_STRING_CHARS = 80

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
OPENCODE_ID = re.compile(r"\b(ses|msg|prt|per|evt)_([0-9a-f]{12}[0-9A-Za-z]{14})\b")
CLINE_ID = re.compile(r"(?<![0-9A-Za-z])1[78]\d{11}_[0-9a-z]{5,7}(?![0-9A-Za-z])")
CLAUDE_AGENT = re.compile(r"\ba[0-9a-f]{16}\b")
PI_ENTRY = re.compile(r'"(?:id|parentId|firstKeptEntryId|targetId)":"([0-9a-f]{8})"')
DIGEST = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})\b")
ISO = re.compile(r"\b(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{3,9})(Z|\+00:00)")
MILLISECONDS = re.compile(r"\b1[78]\d{11}\b")
SECONDS = re.compile(r"\b1[78]\d{8}\b")
IN_NAME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d-\d\d(-\d\d(?![0-9a-f]))?(-\d{3}Z)?")
DAY = re.compile(r"\b20\d\d([-/])\d\d\1\d\d\b(?!T)")
DURATION = re.compile(r'("[A-Za-z_]*(?:[dD]uration|_ms|Ms)[A-Za-z_]*":)[\d.]+')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
CUT = re.compile(rf'"(?:[^"\\]|\\u[0-9a-fA-F]{{4}}|\\[^u]){{{MAX_STRING_CHARS}}}')
CHUNK = re.compile(r"(Chunk ID: )[0-9a-f]{6}")
SLUG = re.compile(r'("slug":\s*")[^"]+')
SOCKET = re.compile(r"(/cc-socks/)\d+")
USER_FOLDER = re.compile(r"(/claude-)\d+(?=/)")


class Anonymizer:
    """Learns every file of a scene, then rewrites them so that equal values stay equal."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = sorted(paths.items(), key=lambda pair: -len(pair[0]))
        self._ids: dict[str, str] = {}
        self._ordered: dict[str, set[str]] = {}
        self._moments: set[datetime] = set()

    def learn(self, path: str, text: str) -> None:
        """Collect the ids and times of a file; ids are numbered in the order of appearance."""
        whole = f"{path}\n{text}"
        for found in UUID.findall(whole):
            self._number(found, lambda n: f"{n:08x}-0000-4000-8000-{n:012x}")
        for found in CLAUDE_AGENT.findall(whole):
            self._number(found, lambda n: f"a{n:016x}")
        for found in CLINE_ID.findall(whole):
            self._number(found, lambda n: f"{1_767_323_045_000 + n}_{n:05}")
        for found in PI_ENTRY.findall(whole):
            self._number(found, lambda n: f"{n:08x}")
        for found in DIGEST.findall(whole):
            self._number(found, f"{{:0{len(found)}x}}".format)
        for kind, found in OPENCODE_ID.findall(whole):
            self._ordered.setdefault(kind, set()).add(found)
        self._moments.update(_moment(*found.groups()[:2]) for found in ISO.finditer(whole))
        self._moments.update(_instant(found) for found in MILLISECONDS.findall(whole))

    def _number(self, found: str, form: Callable[[int], str]) -> None:
        if found not in self._ids:
            self._ids[found] = form(len(self._ids) + 1)

    def path(self, path: str) -> str:
        """The anonymous name of a file."""
        return self._rewrite(path)

    def text(self, text: str) -> str:
        """The anonymous text of a file; strings of more than 80 characters are cut."""
        # Cut last: half a path would no longer be known as one.
        short = STRING.sub(_cut, self._rewrite(text))
        rewritten = CHUNK.sub(r"\g<1>000000", DURATION.sub(r"\g<1>100", short))
        rewritten = SOCKET.sub(r"\g<1>1", USER_FOLDER.sub(r"\g<1>1000", rewritten))
        return SLUG.sub(r"\g<1>a-slug", rewritten)

    def _rewrite(self, text: str) -> str:
        for path, neutral in self._paths:
            for old, new in zip(_spellings(path), _spellings(neutral), strict=True):
                text = text.replace(old, new)
        text = text.replace(platform.release(), "6.8.0").replace(platform.node(), "devbox")
        text = OPENCODE_ID.sub(self._opencode, text)
        text = re.sub(r"[0-9a-f]{8}[0-9a-f-]*", self._known, text)
        text = CLINE_ID.sub(lambda found: self._ids.get(found[0], found[0]), text)
        text = CLAUDE_AGENT.sub(lambda found: self._ids.get(found[0], found[0]), text)
        return self._times(text)

    def _known(self, found: re.Match[str]) -> str:
        """An id, or the first eight digits of one, as some clients put into file names."""
        if found[0] in self._ids:
            return self._ids[found[0]]
        longer = (new for old, new in self._ids.items() if old.startswith(found[0]))
        return next(longer, found[0])[: len(found[0])] if len(found[0]) == 8 else found[0]

    def _opencode(self, found: re.Match[str]) -> str:
        """Opencode sorts by id, so numbers are given in the order of the old ones."""
        place = sorted(self._ordered[found[1]]).index(found[2])
        return f"{found[1]}_{place + 1:012x}{'0' * 14}"

    def _times(self, text: str) -> str:
        ranks = {moment: START + STEP * n for n, moment in enumerate(sorted(self._moments))}
        text = ISO.sub(lambda found: _iso(ranks[_moment(found[1], found[2])], found), text)
        text = IN_NAME.sub(_in_name, text)
        text = DAY.sub(lambda found: START.strftime(f"%Y{found[1]}%m{found[1]}%d"), text)
        text = MILLISECONDS.sub(
            lambda found: str(round(ranks[_instant(found[0])].timestamp() * 1000)), text
        )
        return SECONDS.sub(str(round(START.timestamp())), text)


def _cut(found: re.Match[str]) -> str:
    kept = CUT.match(found[0])
    return f'{kept[0]}…"' if kept and kept.end() < len(found[0]) - 1 else found[0]


def _moment(seconds: str, fraction: str) -> datetime:
    whole = datetime.fromisoformat(f"{seconds}+00:00")
    return whole + timedelta(milliseconds=int(fraction[:3]))


def _instant(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(milliseconds))


def _iso(moment: datetime, found: re.Match[str]) -> str:
    fraction = f"{moment.microsecond // 1000:03d}".ljust(len(found[2]), "0")
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction}{found[3]}"


def _in_name(found: re.Match[str]) -> str:
    seconds = f"-{START:%S}" if found[1] else ""
    return f"{START:%Y-%m-%dT%H-%M}{seconds}{'-000Z' if found[2] else ''}"


def _spellings(path: str) -> tuple[str, ...]:
    """A path as it is, without its slash as in opencode, and as in the clients' folder names."""
    return path, path[1:], re.sub(r"[^A-Za-z0-9]", "-", path), path.replace("/", "-")
