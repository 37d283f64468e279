"""Which session it is, how full a context is, and what each of its calls sent."""

from brimline.agents import display_name
from brimline.cli.context import CommandContext
from brimline.context.tracker import Reading, Session, Thread
from brimline.context.usage import format_occupancy, format_percent, format_tokens
from brimline.monitor.user_rules import Rules
from brimline.terminal.chart import chart
from brimline.terminal.text import colourize, join_facts, shorten_home, strip_control, truncate


def describe_session(context: CommandContext, session: Session) -> list[str]:
    """Return the lines that say which session it is."""
    place = shorten_home(session.project, context.places.home) if session.project else None
    facts = [display_name(session.agent or "unknown agent"), session.version, place]
    facts.append(f"session {session.id}" if session.id else None)
    lines = join_facts([fact for fact in facts if fact], context.width)
    lines = [colourize(line, "bold", context.colour) for line in lines]
    if session.title:
        lines.append(truncate(strip_control(session.title), context.width))
    return lines


def describe_fullness(reading: Reading) -> list[str]:
    """Return what a context holds of its window, and of its limit if that is known."""
    facts = [describe_context(reading) or "unknown until the next reply"]
    if reading.percent_of_limit is not None and reading.limit is not None:
        limit = format_tokens(reading.limit.tokens)
        facts.append(f"of limit {format_percent(reading.percent_of_limit)} ({limit})")
    return facts


def describe_context(reading: Reading) -> str:
    """Summarise a context: percent of its window and tokens, the tokens alone, or empty."""
    if reading.sent is None:
        return ""
    if reading.window is None or reading.percent_raw is None:
        return f"Tokens: {format_tokens(reading.sent)}"
    tokens = f"{format_tokens(reading.sent)}/{format_tokens(reading.window.tokens)}"
    return f"Context: {format_occupancy(reading.percent_raw)} ({tokens})"


def draw_chart(
    context: CommandContext, rules: Rules, session: Session, thread: Thread, reading: Reading
) -> list[str]:
    """Draw what each call of a thread sent."""
    window = reading.window.tokens if reading.window else None
    limit = reading.limit.tokens if reading.limit else None
    levels = rules.marks_of(session.id or "", session.agent or "", thread.model, window, limit)
    return chart(
        [call.usage.sent for call in thread.calls.values()],
        [compaction.calls for compaction in thread.compactions],
        window,
        limit,
        levels,
        context.width,
        context.colour,
    )
