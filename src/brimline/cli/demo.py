"""`brimline demo`: a recorded session, replayed at speed, so that a newcomer sees it at work."""

import argparse
import sys
import time
from pathlib import Path
from textwrap import fill

from brimline.agents import source
from brimline.agents.transcripts.lines import open_transcript
from brimline.cli.context import CommandContext
from brimline.cli.session_text import describe_context, draw_chart
from brimline.context.events import MAIN, Call, Compacted
from brimline.context.tracker import Reading, Session, Thread, fold, read
from brimline.context.usage import format_percent, format_tokens
from brimline.monitor.user_rules import Rules
from brimline.terminal.text import colourize, count_of, draw_bar

RECORDING = Path(__file__).parents[1] / "data" / "demo.jsonl"
DEMO_AGENT = "claude"
DEMO_LENGTH_S = 8.0
BAR, MIN_BAR = 30, 10
NEXT = "Next: `brimline status` for your own sessions, `brimline inspect PATH` for one of them."


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "replay X times as fast (default 1)"
    to.add_argument("--speed", type=float, default=1.0, metavar="X", help=help_text)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    return play(context, options.speed)


def play(context: CommandContext, speed: float = 1.0) -> int:
    """Replay the recording: live on a terminal, else a line for each compaction."""
    live = sys.stdout.isatty()
    events = list(source(DEMO_AGENT).parse(open_transcript(str(RECORDING))))
    pause = DEMO_LENGTH_S / max(1, len(events)) / speed if live and speed > 0 else 0.0
    session, rules = Session(agent=DEMO_AGENT), Rules.of_settings(context.settings)
    print(fill("A recorded Claude Code session (Ctrl-C stops it):", context.width) + "\n")
    for event in events:
        session = fold(session, [event])
        thread = session.threads.get(MAIN)
        if thread is None:
            continue
        if isinstance(event, Compacted):
            _say(fill(_compaction(thread), context.width), live)
        elif isinstance(event, Call) and live:
            _draw(context, rules, thread, read(session, thread, "transcript"))
        time.sleep(pause)
    _finish(context, rules, session, live)
    return 0


def _draw(context: CommandContext, rules: Rules, thread: Thread, reading: Reading) -> None:
    shade = rules.fullness_of(reading, "", DEMO_AGENT, thread.model) or "dim"
    near = reading.percent_of_limit
    limit = f"of limit {format_percent(near)}" if near else ""
    figures, more = describe_context(reading), f"  {limit}  call {len(thread.calls)}"
    room = context.width - len(figures) - 3  # the last column stays empty: no line wraps
    if room - len(more) < MIN_BAR:
        more = ""
    bar = draw_bar(reading.percent, max(0, min(BAR, room - len(more))))
    sys.stdout.write(f"\r\x1b[K{figures}  {colourize(bar, shade, context.colour)}{more}")
    sys.stdout.flush()


def _compaction(thread: Thread) -> str:
    compaction = thread.compactions[-1]
    before = "unknown" if compaction.before is None else format_tokens(compaction.before)
    return f"The client compacts at {before}: usage is unknown until the next reply."


def _say(text: str, live: bool) -> None:
    print(("\r\x1b[K" if live else "") + text)


def _finish(context: CommandContext, rules: Rules, session: Session, live: bool) -> None:
    thread = session.threads[MAIN]
    reading = read(session, thread, "transcript")
    _say(f"{describe_context(reading)} after {count_of(len(thread.calls), 'call')}\n", live)
    print("\n".join(draw_chart(context, rules, session, thread, reading)))
    print("\n" + fill(NEXT, context.width, break_on_hyphens=False))
