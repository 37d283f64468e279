"""`brimline handoff --draft`: a document from a transcript, by no model and no daemon."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from brimline.agents import source
from brimline.agents.transcripts.source import Transcript
from brimline.cli.arguments import chosen_agents
from brimline.cli.context import Context, emit_json
from brimline.cli.session_choice import find_files
from brimline.errors import InvalidRequest, UnreadableTranscript
from brimline.handoff import draft_handoff, iter_records
from brimline.sessions.target import files_of_target, is_file_target
from brimline.terminal.text import strip_control

OWN_SESSION = True  # the session that a command runs in, or the one that --session names


def run(context: Context, options: argparse.Namespace) -> int:
    named = options.session if options.draft is OWN_SESSION else options.draft
    if named is not None and named == options.draft and is_file_target(named):
        files, file = files_of_target(named, context.places, sys.stdin.buffer, options.agent)
        records = _records_of_file(files.transcripts[0], file)
    else:
        files = find_files(context, named, chosen_agents(options))
        records = iter_records(files.transcripts[0].path, files.session)
    own = files.transcripts[0]
    text = _draft(records, own, files.session)
    if not text:
        raise InvalidRequest(f"nothing to draft from in {own.path} yet", None)
    if options.output is not None:
        _write(options.output, text)
    if options.json:
        emit_json({"session": files.session, "agent": own.agent, "transcript": own.path,
                   "text": text})  # fmt: skip
    elif options.output is None:
        sys.stdout.write(printable(text))
    return 0


def printable(text: str) -> str:
    """Replace control characters if standard output is a terminal."""
    if not sys.stdout.isatty():
        return text
    lines = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    return "\n".join("\t".join(map(strip_control, parts)) for parts in lines)


def _records_of_file(own: Transcript, file: BinaryIO | None) -> Iterator[bytes]:
    """Yield the records of any transcript that can be explained."""
    for record in source(own.agent).records(own, file):
        if record.data and not record.is_earlier:
            yield record.data


def _draft(records: Iterator[bytes], own: Transcript, session: str) -> str:
    try:
        return draft_handoff(records, own.agent, where=own.path, session=session)
    except OSError as error:
        raise UnreadableTranscript(own.path, error.strerror or str(error)) from error


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8", "replace")
    except OSError as error:
        why = f"cannot write {path}: {error.strerror or error}"
        raise InvalidRequest(why, "Pass a file in an existing folder: --output FILE.") from error
