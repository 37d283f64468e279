"""The conformance suite of an agent: what its reader, its content and its hooks have to hold.

    @pytest.mark.parametrize("check", CHECKS)
    def test_agent_holds(check: Check, tmp_path: Path) -> None:
        check(AgentSample(agent="otter", home=Path("recorded"), calls=5), tmp_path)

Each check gets an empty folder, copies the sample into it, and raises AssertionError with what is
wrong. A check that a sample has nothing for, such as a subagent, passes.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import msgspec

from brimline.agents import agent_names, agents_present, get_agent
from brimline.agents.content import UserText, read_content
from brimline.agents.hook_adapter import HookRequest
from brimline.agents.hook_command import find_program
from brimline.agents.observations import Reply
from brimline.agents.transcripts.source import MALFORMED, START, Places, Tally, Transcript
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, is_compaction_thread
from brimline.context.tracker import Session, fold
from brimline.context.tracker.state import total
from brimline.install.install import SetupOptions
from brimline.install.plan import apply, plan

HEAD_BYTES = 64 << 10
SQLITE = b"SQLite format 3\0"
DOCUMENT_STARTS = (b"{\n", b"{\r")  # a JSON document over several lines

# How files of several clients begin, and what no client writes.
OTHER_HEADS: Mapping[str, bytes] = {
    "": b"",
    "blank": b"\n \n",
    "text": b"Hello.\n",
    "JSON": b"{}\n[]\nnull\n",
    "bytes": b"\xff\xfe\0\0\x80{",
    "claude": b'{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user",'
    b'"content":"Hi"},"uuid":"1","sessionId":"2","version":"2.1.325"}\n',
    "codex": b'{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"1",'
    b'"cwd":"/x","originator":"codex_exec","cli_version":"0.166.0"}}\n',
    "gemini": b'{"sessionId":"1","projectHash":"2","startTime":"2026-01-02T03:04:05.000Z",'
    b'"lastUpdated":"2026-01-02T03:04:05.000Z","kind":"main"}\n',
    "pi": b'{"type":"session","version":3,"id":"1","timestamp":"2026-01-02T03:04:05.000Z",'
    b'"cwd":"/x"}\n{"type":"model_change","id":"2","parentId":null,"provider":"p"}\n',
}
# What damages the first line of a file.
BAD_STARTS = (b"\xe9\xff", b"\0" * 64, b"\xed\xa0\x80", b'{"', b"[" * 3_000)


class AgentSample(msgspec.Struct, frozen=True, kw_only=True):
    """Files of one session as the client wrote them below a home, and what they contain.

    `calls`, `compactions` and `subagents` are counted over all threads, without those in which the
    client writes summaries. `prompt` is a part of what
    the user wrote. `stream` is a recorded stream of the client. `hook` is the input of a hook whose
    answer may have a text for the model. `unknown` is a record of a kind that the client never
    writes. `env` are variables that the client reads.
    """

    agent: str
    home: Path
    calls: int
    compactions: int = 0
    subagents: int = 0
    prompt: str | None = None
    stream: Path | None = None
    hook: bytes | None = None
    unknown: bytes = b'{"type":"brimline-made-up"}'
    env: Mapping[str, str] = {}


Check: TypeAlias = Callable[[AgentSample, Path], None]
CHECKS: list[Check] = []  # the docstring of each names the property


def check(run: Callable[["SampleCopy"], None]) -> Check:
    """Add a check to CHECKS: it gets a copy of the sample in an empty folder."""

    def checked(sample: AgentSample, folder: Path) -> None:
        shutil.copytree(sample.home, folder / "home")
        run(SampleCopy(sample, folder))

    checked.__name__, checked.__doc__ = run.__name__, run.__doc__
    CHECKS.append(checked)
    return checked


class SampleCopy:
    """A copy of a sample, whose files a check may change."""

    def __init__(self, sample: AgentSample, folder: Path) -> None:
        self.sample, self.folder = sample, folder
        self.agent = get_agent(sample.agent)
        self.places = Places(home=folder / "home", env=sample.env)

    @cached_property
    def transcripts(self) -> list[Transcript]:
        """Its transcripts, those of the main threads first."""
        every = self.agent.transcripts(self.places)
        return sorted(every, key=lambda one: (one.thread != MAIN, one.path))

    def line_files(self) -> Iterator[tuple[Transcript, bytes]]:
        """Its transcripts that are files of lines, each with its content."""
        for transcript in self.transcripts:
            data = Path(transcript.path).read_bytes() if transcript.size else b""
            is_document = data.startswith(DOCUMENT_STARTS)
            if data.count(b"\n") > 1 and not is_document and not data.startswith(SQLITE):
                yield transcript, data

    def read(self, transcript: Transcript, data: bytes | None = None) -> tuple[Session, Tally]:
        """Read a transcript from its start; with `data`, as its new content."""
        if data is not None:
            Path(transcript.path).write_bytes(data)
        reader = self.agent.source.read(transcript, START)
        session = fold(Session(agent=self.agent.name), reader)
        return session, reader.tally

    def events(self, transcript: Transcript) -> list[AnyEvent]:
        return list(self.agent.source.read(transcript, START))


def call_count(sessions: Iterable[Session]) -> int:
    """Return the number of unique calls of all threads."""
    return total(thread for session in sessions for thread in session.threads.values())[0]


@check
def files_are_found(copy: SampleCopy) -> None:
    """The transcripts below a home are listed with their thread, below the agent's folders."""
    agent, places = copy.agent, copy.places
    assert agent.name in agents_present(places), "no `home_folders` or `location_variables`"
    assert [one.agent for one in copy.transcripts if one.agent != agent.name] == []
    assert any(one.thread == MAIN for one in copy.transcripts), "no main transcript is listed"
    folders = [str(folder) for folder in agent.source.folders(places)]
    for transcript in copy.transcripts:
        assert transcript.path.startswith(tuple(folders)), f"{transcript.path}: not in {folders}"
    empty = Places(home=copy.folder / "empty", env=copy.sample.env)
    assert list(agent.transcripts(empty)) == [], "transcripts in a home without any"


@check
def calls_are_counted(copy: SampleCopy) -> None:
    """Calls, compactions and subagents are those of the sample, and no record is a problem."""
    read = [copy.read(transcript) for transcript in copy.transcripts]
    threads = {
        (session.id, name): thread
        for session, _ in read
        for name, thread in session.threads.items()
        if not is_compaction_thread(name)
    }
    sample = copy.sample
    assert total(threads.values())[0] == sample.calls
    assert sum(len(thread.compactions) for thread in threads.values()) == sample.compactions
    assert sum(name != MAIN for _, name in threads) == sample.subagents
    assert [place for _, tally in read for place in tally.places] == []
    assert sum(tally.unknown for _, tally in read) == 0, "records of an unknown kind"


@check
def copies_are_counted_once(copy: SampleCopy) -> None:
    """A call has the same id at every reading, so that reading it again adds nothing."""
    for transcript in copy.transcripts:
        events = copy.events(transcript)
        once = fold(Session(), events)
        assert call_count([fold(once, copy.events(transcript))]) == call_count([once])
        ids = {event.id for event in events if isinstance(event, Call)}
        assert len(ids) == call_count([once])


@check
def every_way_of_reading_agrees(copy: SampleCopy) -> None:
    """A quick reading, the records and the whole reading give the same calls."""
    for transcript in copy.transcripts:
        calls, source = _calls(copy.events(transcript)), copy.agent.source
        assert _calls(source.read(transcript, START, "quick")) == calls
        recorded = (event for record in source.records(transcript) for event in record.events)
        assert _calls(recorded) == calls
        ends = _calls(source.read(transcript, START, "end"))
        assert list(ends.items()) == list(calls.items())[len(calls) - len(ends) :]


def _calls(events: Iterable[AnyEvent]) -> dict[str, Call]:
    """The last copy of each call, in the order of the first ones."""
    return {event.id: event for event in events if isinstance(event, Call)}


@check
def reading_goes_on_in_a_growing_file(copy: SampleCopy) -> None:
    """Reading on after each write, also after a half line, equals reading the whole file."""
    for transcript, data in copy.line_files():
        whole, _ = copy.read(transcript)
        path, session, cursor = Path(transcript.path), Session(agent=copy.agent.name), START
        path.write_bytes(b"")
        for start, end in pairwise(_cuts(data)):
            with path.open("ab") as file:
                file.write(data[start:end])
            reader = copy.agent.source.read(transcript, cursor)
            session = fold(session, reader)
            cursor = reader.cursor
            assert reader.tally.malformed == 0, f"{path} up to byte {end}: {reader.tally.places}"
        assert session == whole, path
        reader = copy.agent.source.read(transcript, cursor)
        assert list(reader) == [], "events of a file that did not grow"


def _cuts(data: bytes) -> list[int]:
    """The start, the middle and the end of every line, before and after its newline."""
    places, start = {0, len(data)}, 0
    for line in data.splitlines(keepends=True):
        end = start + len(line)
        places |= {start + len(line) // 2, max(start, end - 1), end}
        start = end
    return sorted(places)


@check
def torn_last_line_hides_nothing(copy: SampleCopy) -> None:
    """A file whose last line is cut off has the calls of its other lines, and no problem."""
    for transcript, data in copy.line_files():
        lines = data.splitlines(keepends=True)
        before, _ = copy.read(transcript, b"".join(lines[:-1]))
        torn, tally = copy.read(transcript, b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])
        assert torn == before
        assert tally.malformed == 0, tally.places


@check
def unknown_kinds_are_counted(copy: SampleCopy) -> None:
    """Records of an unknown kind are counted and skipped: no figure changes."""
    for transcript, data in copy.line_files():
        whole, _ = copy.read(transcript)
        lines = [one for line in data.splitlines() for one in (line, copy.sample.unknown)]
        session, tally = copy.read(transcript, b"\n".join(lines) + b"\n")
        assert session == whole
        assert (tally.unknown, tally.malformed) == (len(lines) // 2, 0), tally.places


@check
def damaged_lines_are_named(copy: SampleCopy) -> None:
    """A damaged line is counted with its place, and the rest is read."""
    for transcript, data in copy.line_files():
        whole, _ = copy.read(transcript)
        lines = data.splitlines(keepends=True)
        middle = len(lines) // 2
        for damage in (b'{"torn\n', b"\xff\xfe\x80\n", b'{"type":' + b"[" * 3_000 + b"\n"):
            parts = (*lines[:middle], damage, *lines[middle:])
            session, tally = copy.read(transcript, b"".join(parts))
            assert session == whole, f"{damage[:20]!r} changes figures"
            assert tally.malformed == len(tally.places) == 1, f"{damage[:20]!r}: {tally}"


@check
def bad_first_bytes_hide_nothing(copy: SampleCopy) -> None:
    """A damaged first line ends no reading: the calls of all other lines are read."""
    for transcript, data in copy.line_files():
        first, rest = data.split(b"\n", 1)
        without, _ = copy.read(transcript, rest)
        for damage in BAD_STARTS:
            damaged = damage + first[: len(first) // 2] + b"\n" + rest
            copy.agent.recognise(damaged[:HEAD_BYTES])
            session, _ = copy.read(transcript, damaged)
            assert call_count([session]) == call_count([without]), f"{damage[:20]!r} hides calls"
            assert len(list(copy.agent.transcripts(copy.places))) == len(copy.transcripts)


@check
def agent_is_recognised(copy: SampleCopy) -> None:
    """Its transcripts and streams are recognised as its own, and by no other agent."""
    heads = [(head_of(Path(one.path)), "transcript") for one in copy.transcripts if one.size]
    if copy.sample.stream:
        heads.append((head_of(copy.sample.stream), "stream"))
    for head, form in heads:
        assert copy.agent.recognise(head) == form, head[:200]
        for name in agent_names():
            if name != copy.agent.name:
                other = get_agent(name).recognise(head)
                assert not isinstance(other, str), f"{name} takes it for its own {other}"


@check
def other_files_are_not_its_own(copy: SampleCopy) -> None:
    """No file of another client and no text is the agent's; no beginning of a file raises."""
    for name, head in OTHER_HEADS.items():
        match = copy.agent.recognise(head)
        assert name == copy.agent.name or not isinstance(match, str), f"{name}: {match}"
    for transcript in copy.transcripts[:1]:
        head = head_of(Path(transcript.path))[:400]
        for end in range(len(head)):
            copy.agent.recognise(head[:end])
            copy.agent.recognise(head[end:])


def head_of(path: Path) -> bytes:
    """Return the beginning of a file, by which its agent is recognised."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


@check
def compactions_are_in_their_place(copy: SampleCopy) -> None:
    """The call after a compaction sends less than the one before; in between that is unknown."""
    for transcript in copy.transcripts:
        session, before = Session(agent=copy.agent.name), dict[str, int]()
        for event in copy.events(transcript):
            session = fold(session, [event])
            if isinstance(event, Compacted) and session.threads[event.thread].current is None:
                last = session.threads[event.thread].last
                before[event.thread] = last.usage.sent if last else 0
            elif isinstance(event, Call) and event.thread in before:
                sent = event.usage.sent
                fell = sent < before.pop(event.thread)
                assert fell, f"{event.id} sent {sent}, not less than before the compaction"


@check
def subagents_leave_the_main_thread_alone(copy: SampleCopy) -> None:
    """A subagent's calls are in its own thread, of the session that it belongs to."""
    mains = [one for one in copy.transcripts if one.thread == MAIN]
    sessions = {one.session for one in mains}
    for transcript in copy.transcripts:
        if transcript.thread == MAIN:
            continue
        threads = {event.thread for event in copy.events(transcript) if isinstance(event, Call)}
        assert MAIN not in threads, f"calls of {transcript.path} are in the main thread"
        assert transcript.session in sessions, f"{transcript.path} is of no session"


@check
def content_is_read(copy: SampleCopy) -> None:
    """The content reader reads every record, and finds what the user wrote."""
    texts: list[str] = []
    for transcript in copy.transcripts:
        reader = copy.agent.content_reader(transcript.thread != MAIN)
        records = [record.data for record in copy.agent.source.records(transcript)]
        pieces = read_content((data for data in records if data), reader)
        texts += [piece.text for piece in pieces if isinstance(piece, UserText)]
    if copy.sample.prompt is not None:
        assert any(copy.sample.prompt in text for text in texts), texts


@check
def stream_is_read(copy: SampleCopy) -> None:
    """A stream has events, and damaged lines of it raise nothing but what parsers may raise."""
    if copy.sample.stream is None:
        return
    parser = copy.agent.source.stream()
    lines = copy.sample.stream.read_bytes().splitlines()
    assert any(parser.feed(line) for line in lines if line.strip()), "no event"
    for line in lines:
        for damaged in (line[: len(line) // 2], line.replace(b":", b":[", 1), b"\xff" + line):
            try:
                copy.agent.source.stream().feed(damaged)
            except MALFORMED:
                continue


@check
def hooks_are_answered(copy: SampleCopy) -> None:
    """A hook becomes an observation of a session, a reply an answer; damaged input is an error."""
    if not copy.agent.has_hooks:
        return
    hooks, body = copy.agent.hooks, copy.sample.hook

    def request(data: bytes) -> HookRequest:
        return HookRequest("hook", copy.agent.name, "1-1-1", 1, dict(copy.sample.env), data)

    for damaged in (b"", b"{", b"[]", b"\xff", b'{"session_id":7}', (body or b"")[:-2]):
        try:
            hooks.observe(request(damaged), 1.0)
        except MALFORMED:
            continue
    if body is not None:
        observation = hooks.observe(request(body), 1.0)
        assert observation is not None, "no observation"
        assert (observation.agent, bool(observation.session)) == (copy.agent.name, True)
        assert b"Be brief." in hooks.encode_reply(
            observation.hook_event, Reply(context="Be brief.")
        )


@check
def setup_restores_the_files(copy: SampleCopy) -> None:
    """`setup`, and then `setup --remove`, leaves every file as it was, byte by byte."""
    if not copy.agent.has_hooks:
        return
    state = copy.folder / "state"
    state.mkdir()
    program = find_program(copy.folder, "/usr/bin/python3", state, state / "hook.sock")
    for home in (copy.places.home, copy.folder / "new"):
        home.mkdir(exist_ok=True)
        places = Places(home=home, env=copy.sample.env)
        before = _files(home)
        for remove in (False, True):
            options = SetupOptions(program, state, cwd=home, remove=remove)
            for change in plan([copy.agent.name], places, options):
                apply(change)
            assert remove or _files(home) != before, "setup writes nothing"
        assert _files(home) == before


def _files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
