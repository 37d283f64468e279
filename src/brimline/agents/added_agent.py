"""An agent of another package: what fails in its code is recorded, and hides no other agent."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, TypeVar

from brimline.agents import Agent
from brimline.agents.capabilities import Capabilities
from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.content import ContentReader, Piece
from brimline.agents.hook_adapter import HookAdapter
from brimline.agents.install_spec import InstallSpec
from brimline.agents.transcripts.source import (
    MALFORMED,
    START,
    Cursor,
    Form,
    Lookalike,
    Parser,
    Places,
    Reader,
    ReadMode,
    Record,
    Source,
    Tally,
    Transcript,
)
from brimline.context.events import AnyEvent
from brimline.context.window import ClientSettings, ResolveContext
from brimline.errors import MalformedJson, UnreadableTranscript

SOURCE = "transcript_source"

T = TypeVar("T")
Report = Callable[[str], None]

# What a reader may raise: these say what is wrong with the file, and not with the reader.
EXPECTED = (*MALFORMED, OSError, UnreadableTranscript)


class AddedAgent(Agent):
    """An agent of another package, by the import path of the module with its capabilities.

    `report` is called with what fails in its code.
    """

    def __init__(self, name: str, package: str, report: Report) -> None:
        super().__init__(name, package)
        self._report = report

    def check(self, places: Places) -> None:
        """Import all its parts and look at their types; raises TypeError, or what they raise."""
        content, hooks = self._part("content"), self._part("hooks")
        package = import_module(self.package)
        parts = {
            "CAPABILITIES: Capabilities": isinstance(package.CAPABILITIES, Capabilities),
            "paths.transcripts()": callable(self._part("paths").transcripts),
            "transcript_source.SOURCE: Source": callable(self._part(SOURCE).SOURCE.read),
            "content.CONTENT_READER: type[ContentReader]": callable(content.CONTENT_READER),
            "hooks.HOOKS: HookAdapter": isinstance(hooks.HOOKS, HookAdapter),
            "hooks.INSTALL_SPEC: InstallSpec": isinstance(hooks.INSTALL_SPEC, InstallSpec),
        }
        for part, is_right in parts.items():
            if not is_right:
                raise TypeError(f"expected {part}")
        hooks.INSTALL_SPEC.user_file(places)

    def transcripts(self, places: Places) -> Iterator[Transcript]:
        """List its transcripts, as far as it can; one that names another agent is left out."""
        try:
            for transcript in super().transcripts(places):
                if transcript.agent != self.name:
                    raise ValueError(f"a transcript of the agent {transcript.agent!r}")
                yield transcript
        except Exception as error:  # noqa: BLE001 - other agents are not affected
            self._report(describe_failure("transcripts", error))

    @cached_property
    def source(self) -> Source:
        return AddedSource(self.name, self._part(SOURCE).SOURCE, self._report)

    def continued_file(self, path: str) -> str | None:
        find = super().continued_file
        return self._call("find_earlier", lambda: find(path), None)

    def memory_files(self, places: Places, project: str | None) -> list[str]:
        find = super().memory_files
        return self._call("memory_files", lambda: find(places, project), [])

    def subagent_title(self, path: str) -> str | None:
        read = super().subagent_title
        return self._call("subagent_title", lambda: read(path), None)

    def content_reader(self, is_subagent: bool = False) -> ContentReader:
        return AddedContentReader(super().content_reader(is_subagent))

    def compaction_setting(
        self, places: Places, project: str | None, known: ResolveContext
    ) -> CompactionSetting | None:
        find = super().compaction_setting
        return self._call("compaction_setting", lambda: find(places, project, known), None)

    def _call(self, name: str, call: Callable[[], T], default: T) -> T:
        return _result(name, call, default, self._report)


def describe_failure(name: str, error: BaseException) -> str:
    """Return what failed in an agent's code, in a line."""
    kind, text = type(error).__name__, " ".join(str(error).split())
    return f"`{name}` raised {kind}: {text}" if text else f"`{name}` raised {kind}"


def _result(name: str, call: Callable[[], T], default: T, report: Report) -> T:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - other agents are not affected
        report(describe_failure(name, error))
        return default


class AddedSource:
    """The source of an added agent; a file at which it fails is unreadable."""

    def __init__(self, agent: str, source: Source, report: Report) -> None:
        self.agent = agent
        self._source, self._report = source, report

    def folders(self, places: Places) -> list[Path]:
        return _result("folders", lambda: self._source.folders(places), [], self._report)

    def transcripts(self, places: Places) -> Iterable[Transcript]:
        return _result(
            "transcripts", lambda: list(self._source.transcripts(places)), [], self._report
        )

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        read = self._source.settings
        return _result("settings", lambda: read(places, project), ClientSettings(), self._report)

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        path, read = transcript.path, self._source.read
        return AddedReader(
            path, _or_unreadable("read", path, lambda: read(transcript, cursor, how))
        )

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        try:
            yield from self._source.records(transcript, file)
        except EXPECTED:
            raise
        except Exception as error:
            failure = describe_failure("records", error)
            raise UnreadableTranscript(transcript.path, failure) from error

    def parse(self, file: BinaryIO) -> Reader:
        name = str(getattr(file, "name", "the input"))
        return AddedReader(name, _or_unreadable("parse", name, lambda: self._source.parse(file)))

    def stream(self) -> Parser:
        return AddedParser(self._source.stream())

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        return _result("recognise", lambda: self._source.recognise(head), None, self._report)


def _or_unreadable(name: str, path: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except EXPECTED:
        raise
    except Exception as error:
        raise UnreadableTranscript(path, describe_failure(name, error)) from error


class AddedReader:
    """A reader of an added agent's transcript."""

    def __init__(self, path: str, reader: Reader) -> None:
        self._path, self._reader = path, reader

    def __iter__(self) -> Iterator[AnyEvent]:
        try:
            yield from self._reader
        except EXPECTED:
            raise
        except Exception as error:
            raise UnreadableTranscript(self._path, describe_failure("read", error)) from error

    @property
    def cursor(self) -> Cursor:
        return self._reader.cursor

    @property
    def tally(self) -> Tally:
        return self._reader.tally


class AddedParser(Parser):
    """A parser of an added agent's stream; a line at which it fails counts as malformed."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def feed(self, record: bytes) -> Iterable[AnyEvent] | None:
        return _or_malformed("feed", lambda: self._parser.feed(record))


class AddedContentReader(ContentReader):
    """A content reader of an added agent; a record at which it fails counts as malformed."""

    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader

    @property
    def usage_follows_reply(self) -> bool:
        return self._reader.usage_follows_reply

    @property
    def resends_reasoning(self) -> bool:
        return self._reader.resends_reasoning

    @property
    def silent_prefixes(self) -> tuple[bytes, ...]:
        return self._reader.silent_prefixes

    @property
    def outcome_marks(self) -> tuple[bytes, ...]:
        return self._reader.outcome_marks

    def read_record(self, record: bytes) -> Iterator[Piece]:
        yield from _or_malformed("read_record", lambda: list(self._reader.read_record(record)))

    def read_line(self, line: bytes) -> Iterator[Piece]:
        yield from _or_malformed("read_line", lambda: list(self._reader.read_line(line)))


def _or_malformed(name: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except MALFORMED:
        raise
    except Exception as error:
        raise MalformedJson(describe_failure(name, error)) from error
