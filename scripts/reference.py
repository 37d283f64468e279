"""Write the reference pages from the code: `python scripts/reference.py`; `--check` compares."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

import brimline
from brimline.agents.fresh_session import Baseline, Category, FreshPart
from brimline.agents.telemetry import ManagedSettingsFile
from brimline.api.app import ENDPOINTS
from brimline.api.fleet import FleetGroup, FleetView
from brimline.api.openapi import build_document
from brimline.cli import inspect as inspected
from brimline.cli import status as shown
from brimline.cli.commands import ABOUT, actions_of, create_parser, examples_of, parsers_of
from brimline.cli.compactions import CompactionShown
from brimline.cli.doctor_checks import Check
from brimline.cli.explain import ExplainedSession
from brimline.cli.fleet import Snippet
from brimline.cli.pin import PinShown
from brimline.cli.report import PrintedReport
from brimline.cli.setup_changes import SetupShown
from brimline.cli.token import SharedToken, TokensRevoked
from brimline.cli.token_creation import TokenPlanned, TokenShown
from brimline.context.cache_misses import CacheMiss
from brimline.context.client_report import MissCause, PromptCache, Quota, Quotas, SpendLimit
from brimline.context.formulas import Components, Formulas
from brimline.context.tracker import Reading
from brimline.context.usage import Usage
from brimline.context.window import Limit, Window
from brimline.run.ralph import HatStats, LoopStats
from brimline.run.result import IterationResult
from brimline.server.fleet.actions import AuditEntry
from brimline.sessions.compaction_effects import CompactionEffect
from brimline.sessions.compaction_facts import CompactionFacts, FactCount
from brimline.sessions.compaction_report import (
    CompactionAverages,
    CompactionLine,
    CompactionReport,
)
from brimline.sessions.ledger.explain import (
    ExplainedCall,
    ExplainedCategory,
    ExplainedCycle,
    ExplainedPiece,
    ExplainedThread,
    NamedTokens,
    ToolTokens,
)
from brimline.sessions.ledger.system_parts import SystemPart
from brimline.sessions.ledger.waste import Waste
from brimline.sessions.recall.search import HitLine, Recall, RecallHit
from brimline.sessions.report import ModelTotal, ReportLine, SessionFacts
from brimline.sessions.tool_report import CarriedPart, ToolReport

FOLDER = Path(__file__).parent.parent / "docs/reference"

JSON: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "brimline inspect --json": (
        inspected.Inspected,
        inspected.Skipped,
        inspected.ThreadShown,
        CompactionShown,
        inspected.Point,
        Formulas,
        Components,
        Quotas,
        Quota,
        SpendLimit,
        PromptCache,
        MissCause,
    ),
    "brimline explain --json": (
        ExplainedSession,
        SystemPart,
        ExplainedThread,
        ExplainedCategory,
        ExplainedPiece,
        ToolTokens,
        NamedTokens,
        Waste,
        CacheMiss,
        ExplainedCycle,
        ExplainedCall,
    ),
    "brimline recall --json": (Recall, RecallHit, HitLine),
    "brimline pin --json, pins --json": (PinShown,),
    "brimline status --json": (shown.StatusShown,),
    "brimline report --json": (PrintedReport, ReportLine, ModelTotal, SessionFacts, Usage),
    "brimline report --compactions --json": (
        CompactionReport,
        CompactionLine,
        CompactionAverages,
        CompactionEffect,
        CompactionFacts,
        FactCount,
    ),
    "brimline run --render json": (IterationResult, Reading),
    "brimline run --summary --json": (LoopStats, HatStats),
    "brimline tools --json": (ToolReport, CarriedPart),
    "brimline baseline --json": (Baseline, Category, FreshPart),
    "brimline setup --json": (SetupShown,),
    "brimline doctor --json": (Check,),
    "brimline fleet snippet --json": (Snippet, ManagedSettingsFile),
    "brimline fleet status --json": (FleetView, FleetGroup),
    "brimline fleet audit --json": (AuditEntry,),
    "brimline token --json": (TokenShown, TokenPlanned, TokensRevoked, SharedToken),
    "in all of them": (Window, Limit),
}


def options(command: argparse.ArgumentParser) -> Iterator[str]:
    """A command's arguments as the rows of a table."""
    yield "| argument | meaning |\n|---|---|"
    for names, value, about in arguments(command):
        listed = ", ".join(f"`{name}`" for name in names)
        shown = f" `{value}`".replace("|", "\\|") if value else ""
        yield f"| {f'{listed}{shown}' if listed else shown.strip()} | {about} |"


def arguments(command: argparse.ArgumentParser) -> Iterator[tuple[list[str], str, str]]:
    """The names, value and help of every argument of a command."""
    for action in actions_of(command):
        if action.dest != "command":
            choices = "|".join(map(str, action.choices)) if action.choices else ""
            yield list(action.option_strings), str(action.metavar or choices), action.help or ""


def cli() -> str:
    """The page of the command line."""
    parts = [f"# Command line\n\n{ABOUT} Without a command, `brimline` is `brimline status`."]
    for name, command in parsers_of(create_parser()).items():
        table = "\n".join(options(command))
        examples = ", ".join(f"`{each}`" for each in examples_of(name))
        about = f"{command.description} Examples: {examples}."
        parts.append(f"## brimline {name}\n\n{about}\n\n{table}")
    parts.append(
        "## Exit codes\n\n| code | meaning |\n|---|---|\n"
        "| 0 | done; files that could not be read are reported on standard error |\n"
        "| 1 | failed: `serve` lost its socket, `serve --background` could not start the daemon, "
        "`serve --stop` could not stop it, `setup` could not write, `doctor` found a problem, or "
        "the output could not be written |\n"
        "| 2 | wrong usage: an unknown path, session, agent or option, or an invalid setting; or "
        "the command needs the daemon and it is not running |\n"
        "| 3 | `serve --status`: the daemon is not running |\n"
        "| 130 | interrupted by Ctrl-C |"
    )
    return "\n\n".join(parts) + "\n"


def man_page() -> str:
    """The manual page, in the roff macros of man(7)."""
    parts = [
        f'.TH BRIMLINE 1 "" "Brimline {brimline.__version__}" "User Commands"',
        f".SH NAME\nbrimline \\- {roff(ABOUT[0].lower() + ABOUT[1:].rstrip('.'))}",
        ".SH SYNOPSIS\n.B brimline\n[\\fICOMMAND\\fR] [\\fIOPTION\\fR ...]",
        f".SH DESCRIPTION\n{roff(ABOUT)} Without a command, it lists the active sessions.",
        ".SH COMMANDS",
    ]
    for name, command in parsers_of(create_parser()).items():
        parts.append(f".SS brimline {name}\n{roff(command.description or '')}")
        for names, value, about in arguments(command):
            shown = ", ".join(f"\\fB{roff(one)}\\fR" for one in names)
            parts.append(f".TP\n{shown} \\fI{roff(value)}\\fR\n{roff(about)}")
        lines = [roff(each) for each in examples_of(name)]
        parts.append("\n".join([".PP", "Examples:", ".EX", *lines, ".EE"]))
    return "\n".join(parts) + "\n"


def roff(text: str) -> str:
    """Escape text for roff: dashes stay dashes, and no line begins with a macro."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def fields(struct: type[msgspec.Struct]) -> Iterator[str]:
    """A struct's fields as the rows of a table."""
    yield "| field | type |\n|---|---|"
    types = get_type_hints(struct)  # without the bounds of `Annotated`
    for field in msgspec.structs.fields(struct):
        type_of_field = types[field.name]
        kind = getattr(type_of_field, "__name__", None) if isinstance(type_of_field, type) else None
        text = re.sub(r"\b(?:\w+\.)+", "", kind or str(type_of_field))
        text = text.replace(" | UnsetType", " (with --series)").replace("|", "\\|")
        yield f"| `{field.encode_name}` | `{text}` |"


def json_page() -> str:
    """The page of the JSON that the commands print."""
    times = "A time is in Unix seconds, or in ISO 8601 if its type is `str`."
    parts = [f"# JSON\n\nUnknown is `null`, never 0. {times}"]
    for command, structs in JSON.items():
        parts.append(f"## {command}")
        for struct in structs:
            about = (struct.__doc__ or "").strip().replace("\n    ", "\n")
            parts.append(f"### {struct.__name__}\n\n{about}\n\n" + "\n".join(fields(struct)))
    return "\n\n".join(parts) + "\n"


def http() -> str:
    """The page of the daemon's endpoints and their types, from its OpenAPI document."""
    document = build_document(ENDPOINTS)
    about = (
        "The endpoints of the daemon, and the types of their bodies: those of its `/openapi.json`. "
        "[Build on the daemon](../guides/http-api.md) describes the secret, errors and the stream. "
        "Unknown is `null`, never 0; a time is in Unix seconds."
    )
    rows = ["| endpoint | what it does | query | body | reply |\n|---|---|---|---|---|"]
    for path, operations in sorted(document["paths"].items()):
        rows += [endpoint(path, method, one) for method, one in operations.items()]
    parts = [f"# HTTP API\n\n{about}", "## Endpoints", "\n".join(rows), "## Types"]
    for name, schema in document["components"]["schemas"].items():
        if not name.startswith("_"):  # a part of an OpenTelemetry request
            parts += [
                f"### {name}",
                re.sub(r"\n +", "\n", schema.get("description", "")),
                members(schema),
            ]
    return "\n\n".join(part for part in parts if part) + "\n"


def endpoint(path: str, method: str, operation: dict[str, Any]) -> str:
    """An operation of the OpenAPI document as the row of a table."""
    about = operation["summary"]
    if operation.get("x-unix-socket-only"):
        about += " Only over the Unix socket."
    parameters = operation.get("parameters", [])
    query = ", ".join(f"`{one['name']}`" for one in parameters if one["in"] == "query")
    body = content(operation["requestBody"]) if "requestBody" in operation else ""
    (reply,) = (one for status, one in operation["responses"].items() if status[0] == "2")
    events = operation.get("x-events", {})
    replied = [f"`{name}`: {type_of(schema)}" for name, schema in events.items()]
    cells = [f"`{method.upper()} {path}`", about, query, body, "; ".join(replied) or content(reply)]
    return f"| {' | '.join(cells)} |"


def content(message: dict[str, Any]) -> str:
    """The type of a body; a body that is no JSON is named by its media type."""
    ((media, body),) = message["content"].items()
    return type_of(body["schema"]) if media == "application/json" else f"`{media}`"


def members(schema: dict[str, Any]) -> str:
    """The properties of an object as a table."""
    rows = ["| field | type |\n|---|---|"]
    for name, each in schema.get("properties", {}).items():
        default = f" (default `{json.dumps(each['default'])}`)" if "default" in each else ""
        rows.append(f"| `{name}` | {type_of(each)}{default} |")
    return "\n".join(rows) if len(rows) > 1 else ""


def type_of(schema: dict[str, Any]) -> str:
    """A schema in words, with a link to each type of its own."""
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return f"`{name[1:]}`" if name.startswith("_") else f"[`{name}`](#{name.lower()})"
        case {"anyOf": kinds}:
            return " or ".join(map(type_of, kinds))
        case {"enum": values}:
            return " or ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "array", "items": items}:
            return f"list of {type_of(items)}"
        case {"type": "object", "additionalProperties": values}:
            return f"object of {type_of(values)}"
        case {"type": kind}:
            return f"`{kind}`"
        case _:
            return "any"


# Plain values have no docstring of their own.
CONSTANTS = {
    "DEFAULT_CONTEXT_WINDOW": "The window that `ContextService` assumes of an unknown model.",
    "MODEL_CONTEXT_WINDOWS": "The windows of `ContextService` that are not the catalogue's.",
}


def library() -> str:
    """The page of the public names."""
    rows = ["| name | what it is |\n|---|---|"]
    for name in brimline.__all__:
        about = CONSTANTS.get(name) or getattr(brimline, name).__doc__ or ""
        about = about.strip().partition("\n")[0]
        rows.append(f"| `{name}` | {about if name != '__version__' else 'The version.'} |")
    about = (
        "Everything that `import brimline` offers. It is [stable](stability.md), and so are the "
        "classes of [`brimline.integrations`](../guides/integrations.md)."
    )
    return f"# Library\n\n{about}\n\n" + "\n".join(rows) + "\n"


PAGES = {
    "cli.md": cli,
    "json.md": json_page,
    "http.md": http,
    "library.md": library,
    "brimline.1": man_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    stale: list[str] = []
    for name, make in PAGES.items():
        path, text = FOLDER / name, make()
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
    if stale:
        print(f"stale: {', '.join(stale)}; run `make reference`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
