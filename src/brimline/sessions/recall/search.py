"""Search the transcripts of sessions: the best passages with their places, and the lines around."""

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from pathlib import Path

import msgspec

from brimline.agents import get_agent
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN
from brimline.sessions.files import READ_ERRORS, SessionFiles, describe_read_error
from brimline.sessions.recall.index_file import (
    PassageIndex,
    StoredPassage,
    index_name,
    open_index,
)
from brimline.sessions.recall.passages import Role
from brimline.sessions.recall.query import RecallQuery

FOLDER_NAME = "recall"  # in the cache folder
DEFAULT_HITS = 10
MAX_HITS = 100
MAX_EARLIER = 16  # sessions that a session continues, one after the other
MAX_LINE_CHARS = 240
MAX_HIT_LINES = 3
MAX_SHOWN_CHARS = 200  # of a result's command, and of a command's result
RESULT_LINES = 3

Progress = Callable[[int, int], None]

_WORD_EDGE = re.compile(r"\s")


class HitLine(msgspec.Struct, frozen=True):
    """A line of a passage, and the places in it that were searched for: start and end."""

    text: str
    marks: list[tuple[int, int]] = []


class RecallHit(msgspec.Struct, frozen=True):
    """A passage that has all words, with its place and the lines around them.

    `line` counts the lines of `path`, or the session's records in a database or a document. `call`
    is how many calls of the model the thread had made by then. `tool` and `command` are of a tool's
    call; a result has those of its call, and a call has the end of its `result`.
    """

    agent: str
    session: str
    thread: str
    path: str
    line: int
    call: int
    role: Role
    lines: list[HitLine]
    at: float | None = None
    tool: str = ""
    command: str = ""
    result: str = ""


class Recall(msgspec.Struct, frozen=True):
    """What was found, the best first; `more`: there are hits beyond these.

    `words`: no passage has the phrases, and these are the passages with all of their words.
    `compacted`: a searched session was compacted or cleared. `problems` are the files that could
    not be searched.
    """

    hits: list[RecallHit]
    more: bool = False
    words: bool = False
    compacted: bool = False
    searched: int = 0
    problems: list[str] = []


class SearchScope(msgspec.Struct, frozen=True):
    """A session to search; `is_earlier`: others continue it, so that no context holds it."""

    files: SessionFiles
    is_earlier: bool = False


def find_earlier(
    files: SessionFiles, others: Iterable[SessionFiles], cleared: Mapping[str, str]
) -> list[SearchScope]:
    """Return a session and those that it continues, the latest first.

    `cleared` has the session that was cleared by the one that continues it.
    """
    by_id = {(each.agent, each.session): each for each in others}
    by_path = {each.transcripts[0].path: each for each in by_id.values()}
    scopes, seen, last = [SearchScope(files)], {files.session}, files
    while len(scopes) <= MAX_EARLIER:
        path = get_agent(last.agent).continued_file(last.transcripts[0].path)
        before = by_path.get(path or "") or by_id.get((last.agent, cleared.get(last.session, "")))
        if before is None or before.session in seen:
            break
        seen.add(before.session)
        scopes.append(SearchScope(before, is_earlier=True))
        last = before
    return scopes


def search(
    scopes: Sequence[SearchScope],
    query: RecallQuery,
    folder: Path,
    *,
    before_compaction: bool = False,
    most: int = DEFAULT_HITS,
    progress: Progress | None = None,
) -> Recall:
    """Search sessions for passages with all terms, or if there are none with all their words.

    Their indexes in `folder` are brought up to date before.
    """
    found = _Search(scopes, folder, before_compaction, most, progress)
    result = found.run(query)
    if result.hits or not query.has_phrases:
        return result
    return msgspec.structs.replace(found.run(query.split_phrases()), words=True)


class _Search:
    def __init__(
        self,
        scopes: Sequence[SearchScope],
        folder: Path,
        before_compaction: bool,
        most: int,
        progress: Progress | None,
    ) -> None:
        self._scopes, self._folder = scopes, folder
        self._before_compaction, self._most = before_compaction, most
        self._whole = sum(each.size for scope in scopes for each in scope.files.transcripts)
        self._done = 0
        self._progress = progress

    def run(self, query: RecallQuery) -> Recall:
        problems: list[str] = []
        lists: list[list[tuple[float, RecallHit]]] = []
        compacted = False
        for scope in self._scopes:
            for transcript in scope.files.transcripts:
                try:
                    hits, has_boundary, problem = self._search_index(scope, transcript, query)
                except READ_ERRORS as error:
                    problems.append(describe_read_error(transcript, error))
                    continue
                lists.append(hits)
                compacted = compacted or has_boundary or scope.is_earlier
                problems += [problem] if problem else []
        best = [hit for _, hit in merge(*lists, key=lambda pair: pair[0])]
        return Recall(
            best[: self._most],
            more=len(best) > self._most,
            compacted=compacted,
            searched=len(self._scopes),
            problems=list(dict.fromkeys(problems)),
        )

    def _search_index(
        self, scope: SearchScope, transcript: Transcript, query: RecallQuery
    ) -> tuple[list[tuple[float, RecallHit]], bool, str | None]:
        """Return the best hits of a transcript; an index that is damaged is made again."""
        try:
            return self._search_once(scope, transcript, query)
        except sqlite3.DatabaseError:
            with suppress(OSError):
                (self._folder / index_name(transcript)).unlink(missing_ok=True)
            return self._search_once(scope, transcript, query)

    def _search_once(
        self, scope: SearchScope, transcript: Transcript, query: RecallQuery
    ) -> tuple[list[tuple[float, RecallHit]], bool, str | None]:
        with open_index(self._folder, transcript, self._advance) as (index, problem):
            is_own = transcript.thread == MAIN and not scope.is_earlier
            found = index.find_candidates(query, self._before_compaction and is_own)
            hits = _unique_hits(found, index, scope, transcript, query)
            has_boundary = is_own and index.mark.boundary > 0
            return list(islice(hits, self._most + 1)), has_boundary, problem

    def _advance(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(min(self._done, self._whole), self._whole)


def _unique_hits(
    candidates: Iterable[tuple[float, StoredPassage]],
    index: PassageIndex,
    scope: SearchScope,
    transcript: Transcript,
    query: RecallQuery,
) -> Iterator[tuple[float, RecallHit]]:
    """Yield hits with different lines: a file that was read again is not shown again."""
    seen: set[tuple[str, ...]] = set()
    for score, stored in candidates:
        found = query.find_lines(stored.passage.text)
        if found is not None and found not in seen:
            seen.add(found)
            yield score, _hit(stored, excerpt(stored.passage.text, query), index, scope, transcript)


def _hit(
    stored: StoredPassage,
    lines: list[HitLine],
    index: PassageIndex,
    scope: SearchScope,
    transcript: Transcript,
) -> RecallHit:
    passage = stored.passage
    call = passage if passage.role == "call" else index.find_call(passage.call_id, "call")
    result = index.find_call(passage.call_id, "result") if passage.role == "call" else None
    return RecallHit(
        agent=transcript.agent,
        session=scope.files.session,
        thread=transcript.thread,
        path=transcript.path,
        line=stored.line,
        call=stored.call,
        role=passage.role,
        lines=lines,
        at=passage.at,
        tool=call.tool if call else "",
        command=call.text.partition("\n")[0][:MAX_SHOWN_CHARS] if call else "",
        result="\n".join(result.text.splitlines()[-RESULT_LINES:])[-MAX_SHOWN_CHARS:]
        if result
        else "",
    )


def excerpt(text: str, query: RecallQuery) -> list[HitLine]:
    """Return the lines that show all terms, at most MAX_HIT_LINES, and those around the best."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    marks: dict[int, list[tuple[int, int]]] = {}
    terms: dict[int, set[int]] = {}
    for number, term in enumerate(query.terms):
        for match in term.pattern.finditer(text):
            _add_marks(match.span(), starts, lines, marks, terms, number)
    chosen = _choose_lines(terms, len(query.terms))
    if not chosen:
        return []
    around = {number for number in (chosen[0] - 1, chosen[0] + 1) if 0 <= number < len(lines)}
    shown = sorted({*chosen, *(number for number in around if lines[number].strip())})
    return [_cut_line(lines[number], marks.get(number, [])) for number in shown]


def _add_marks(
    span: tuple[int, int],
    starts: Sequence[int],
    lines: Sequence[str],
    marks: dict[int, list[tuple[int, int]]],
    terms: dict[int, set[int]],
    term: int,
) -> None:
    """Note a match in each line that it is in; a phrase may go over a line break."""
    from bisect import bisect_right

    number = bisect_right(starts, span[0]) - 1
    while number < len(lines) and starts[number] < span[1]:
        start = max(0, span[0] - starts[number])
        end = min(len(lines[number]), span[1] - starts[number])
        if end > start:
            marks.setdefault(number, []).append((start, end))
            terms.setdefault(number, set()).add(term)
        number += 1


def _choose_lines(terms: Mapping[int, Collection[int]], wanted: int) -> list[int]:
    """Return the line with the most terms, then those with terms that are missing in it."""
    chosen: list[int] = []
    have: set[int] = set()
    while len(have) < wanted and len(chosen) < MAX_HIT_LINES and terms:
        best = max(terms, key=lambda line: (len(set(terms[line]) - have), -line))
        if not set(terms[best]) - have:
            break
        chosen.append(best)
        have |= set(terms[best])
    return chosen


def _cut_line(line: str, marks: list[tuple[int, int]]) -> HitLine:
    """Cut a long line around its first mark, at spaces if there are any near."""
    ordered = _join_marks(sorted(marks))
    if len(line) <= MAX_LINE_CHARS:
        return HitLine(line, ordered)
    first = ordered[0][0] if ordered else 0
    start = max(0, min(first - MAX_LINE_CHARS // 3, len(line) - MAX_LINE_CHARS))
    if start and (space := _WORD_EDGE.search(line, start, max(start, first))):
        start = space.end()
    end = min(len(line), start + MAX_LINE_CHARS)
    head, tail = "…" if start else "", "…" if end < len(line) else ""
    shift = len(head) - start
    kept = [(a + shift, min(b, end) + shift) for a, b in ordered if a >= start and a < end]
    return HitLine(head + line[start:end] + tail, kept)


def _join_marks(marks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in marks:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
