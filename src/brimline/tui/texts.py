"""The texts of the terminal UI: connection states, empty list, help."""

from brimline.terminal.text import strip_control
from brimline.tui.bars import LEVEL_MARK, LIMIT_MARK, PENDING_MARK
from brimline.tui.chart_marks import SEVERAL_SYMBOL, SYMBOLS
from brimline.tui.filter import SORTS, ListOptions
from brimline.tui.provider import Connection, ConnectionState
from brimline.tui.styled_text import Line, StyledText

_CONNECTION_TEXTS: dict[ConnectionState, str] = {
    "connecting": "○ connecting",
    "live": "● live",
    "lost": "○ daemon lost, reconnecting",
    "files": "◌ no daemon, reading transcripts",
}


def connection_line(connection: Connection) -> Line:
    """The state of the connection; its symbol needs no colour."""
    shade = "low" if connection.state == "live" else "medium"
    text = _CONNECTION_TEXTS[connection.state]
    if connection.reason and connection.state == "files":
        text += f" ({one_line(connection.reason)})"
    return [StyledText(text, shade)]


def one_line(text: str) -> str:
    return strip_control(" ".join(text.split()))


def too_small_lines(size: tuple[int, int], min_size: tuple[int, int]) -> list[Line]:
    needed, actual = f"needs {min_size[0]}x{min_size[1]}", f"has {size[0]}x{size[1]}"
    return [[StyledText("too small", "bold")], [StyledText(needed)], [StyledText(actual)]]


def empty_list_lines(state: ConnectionState, has_hidden: bool, options: ListOptions) -> list[Line]:
    """What the overview shows when no session is visible, and what to do."""
    if state == "connecting":
        return [[StyledText("  Looking for sessions ...", "dim")]]
    if options.words:
        return [[StyledText("  No session matches the filter. Press Esc to clear it.")]]
    if has_hidden:
        return [[StyledText("  No live sessions. Press a to show older ones.")]]
    texts = [
        "No sessions yet.",
        "",
        "`brimline setup` installs Brimline's hooks in your agents,",
        "`brimline serve` starts the daemon,",
        "`brimline demo` replays a recorded session.",
    ]
    return [[StyledText(f"  {text}")] for text in texts]


_KEY_ROWS = (
    ("j k, arrows", "move, or scroll"),
    ("g G, space b", "first, last, next page, previous page"),
    ("Enter", "open the session"),
    ("Esc", "close what was opened last; clear the filter"),
    ("/", "filter by words in agent, project, host, model, title or id"),
    ("s", f"sort: {', '.join(SORTS)}"),
    ("a", "show or hide sessions that ended or are old"),
    ("n p", "in a session: next session, previous session"),
    ("t", "in a session: next thread"),
    ("e", "in a session: what fills it, and back"),
    ("m u", "in a session: write a message, an urgent message"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
)

_SYMBOL_ROWS = (
    ("low medium high", "below your first level, from it, from the last"),
    ("at limit", "the limit is reached, and the client compacts"),
    ("over, 130%!", "more tokens were sent than the known window holds"),
    (LEVEL_MARK, "on a bar: a level, at which the agent gets a message"),
    (PENDING_MARK, "on a bar: a level whose message waits for the agent"),
    (LIMIT_MARK, "on a bar: the limit, at which the client compacts"),
    ("····", "unknown: before the first reply, and after a compaction"),
    ("stale 3h", "no events for more than an hour"),
    ("handoff", "none, fresh, old or draft; ? without the daemon"),
    *((symbol, f"below a chart: {kind}") for kind, symbol in SYMBOLS.items()),
    (SEVERAL_SYMBOL, "below a chart: several marks"),
)


def _table_lines(rows: tuple[tuple[str, str], ...]) -> list[Line]:
    return [[StyledText(f"{name:<16}", "bold"), StyledText(text)] for name, text in rows]


HELP: list[Line] = [*_table_lines(_KEY_ROWS), [], *_table_lines(_SYMBOL_ROWS)]
