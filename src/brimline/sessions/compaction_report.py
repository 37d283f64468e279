"""Every compaction of the transcripts on a machine, and what is usual per version of a client."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from statistics import fmean, median

import msgspec

from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN
from brimline.context.prices import day_of
from brimline.context.tracker import Session
from brimline.sessions.compaction_effects import (
    MainContent,
    MeasuredCompaction,
    measure_compactions,
    read_main_content,
)
from brimline.sessions.compaction_facts import CompactionFacts, add_facts
from brimline.sessions.files import shorten_ids
from brimline.sessions.index import (
    ONE_PROCESS_MAX_BYTES,
    Progress,
    TranscriptIndex,
    map_in_processes,
    usable_cores,
)
from brimline.sessions.report import UNKNOWN, ReportFilter, TranscriptSummary


class CompactionLine(MeasuredCompaction, frozen=True, kw_only=True):
    """A compaction with its session; `short_id` is the beginning of its id that no other has."""

    agent: str
    session: str
    short_id: str
    project: str | None


class CompactionAverages(msgspec.Struct, frozen=True):
    """The compactions of one version of a client; a figure of none of them is None.

    `before` and `after` are means, `calls_to_edit` is a median. `facts` are sums. `injected` counts
    those after which Brimline injected something. `is_summary_encrypted`: of one of them at least.
    """

    agent: str
    version: str | None
    compactions: int
    before: float | None
    after: float | None
    injected: int
    facts: CompactionFacts
    is_summary_encrypted: bool
    calls_to_edit: float | None


class CompactionReport(msgspec.Struct, frozen=True):
    """Compactions of main threads in the order of their times, and the averages by version."""

    compactions: list[CompactionLine]
    averages: list[CompactionAverages]


def report_compactions(
    index: TranscriptIndex,
    items: Sequence[TranscriptSummary],
    selection: ReportFilter,
    progress: Progress | None = None,
) -> CompactionReport:
    """Read the transcripts that have compactions, and return those that are selected.

    A compaction that a fork copied is that of the file which was begun first.
    """
    short_ids = shorten_ids(item.session for item in items)
    read = [(item, session) for item in items if (session := _compacted_session(index, item))]
    read.sort(key=lambda pair: index.begun_at(pair[0].transcript) or 0.0)
    contents = _read_contents([item.transcript for item, _ in read], progress)
    lines: dict[tuple[object, ...], CompactionLine] = {}
    for (item, session), content in zip(read, contents, strict=True):
        project = session.project or item.transcript.project
        for each in measure_compactions(session.threads[MAIN], content):
            is_selected = selection.has_day_and_branch(day_of(each.at), each.branch)
            if is_selected and selection.has_project(project or UNKNOWN):
                line = CompactionLine(
                    **{field: getattr(each, field) for field in each.__struct_fields__},
                    agent=item.transcript.agent,
                    session=item.session,
                    short_id=short_ids[item.session],
                    project=project,
                )
                lines.setdefault(_identity(line), line)
    ordered = sorted(lines.values(), key=lambda line: line.at or 0.0)
    return CompactionReport(ordered, list(_average_by_version(ordered)))


def _compacted_session(index: TranscriptIndex, item: TranscriptSummary) -> Session | None:
    """Return the session of a main transcript with a compaction, else None."""
    if item.transcript.thread != MAIN or not any(row.compactions for row in item.summary.rows):
        return None
    session = index.session(item.transcript)
    return session if session is not None and MAIN in session.threads else None


def _identity(line: CompactionLine) -> tuple[object, ...]:
    if line.at is None:
        return line.agent, line.session, line.cycle
    return line.agent, line.at, line.before


def _read_contents(
    transcripts: Sequence[Transcript], progress: Progress | None
) -> Iterator[MainContent | None]:
    """Yield what the transcripts contain, in their order; in several processes if it is much."""
    total, done = sum(each.size for each in transcripts), 0
    workers = usable_cores() if total > ONE_PROCESS_MAX_BYTES else 1
    results = map_in_processes(read_main_content, transcripts, workers, chunk_jobs=1)
    with closing(results) as contents:
        for transcript, content in zip(transcripts, contents, strict=True):
            yield content
            done += transcript.size
            if progress:
                progress(done, total)


def _average_by_version(lines: Iterable[CompactionLine]) -> Iterator[CompactionAverages]:
    groups: dict[tuple[str, str], list[CompactionLine]] = {}
    for line in lines:
        groups.setdefault((line.agent, line.version or ""), []).append(line)
    for (agent, version), group in sorted(groups.items(), key=lambda each: _order(*each[0])):
        effects = [line.effect for line in group if line.effect is not None]
        yield CompactionAverages(
            agent,
            version or None,
            len(group),
            before=_mean(line.before for line in group),
            after=_mean(line.after for line in group),
            injected=sum(effect.injected_chars > 0 for effect in effects),
            facts=add_facts(effect.facts for effect in effects),
            is_summary_encrypted=any(effect.is_summary_encrypted for effect in effects),
            calls_to_edit=_median(effect.calls_to_edit for effect in effects),
        )


def _order(agent: str, version: str) -> tuple[str, list[int], str]:
    """Sort 2.1.9 before 2.1.10."""
    return agent, [int(number) for number in re.findall(r"\d+", version)], version


def _mean(figures: Iterable[int | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return fmean(known) if known else None


def _median(figures: Iterable[int | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None
