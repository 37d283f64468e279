"""What the terminal says by itself: the state of the connection, the help, what to do next."""

from brimline.terminal.text import strip_control
from brimline.tui.bars import LEVEL_MARK, LIMIT_MARK
from brimline.tui.chart_marks import SEVERAL_SYMBOL, SYMBOLS
from brimline.tui.filter import ListOptions
from brimline.tui.styled_text import Line, Span
from brimline.tui.updates import Connection, ConnectionState

_CONNECTION_TEXTS: dict[ConnectionState, str] = {
    "connecting": "○ connecting",
    "live": "● live",
    "lost": "○ daemon lost, trying again",
    "files": "◌ no daemon: reading the files",
}


def connection_line(connection: Connection) -> Line:
    """Where the sessions come from, with a sign that needs no colour."""
    shade = "low" if connection.state == "live" else "medium"
    problem = (
        f" ({one_line(connection.problem)})"
        if connection.problem and connection.state == "files"
        else ""
    )
    return [Span(f"{_CONNECTION_TEXTS[connection.state]}{problem}", shade)]


def one_line(text: str) -> str:
    """A text on one line, with nothing in it that a terminal would obey."""
    return strip_control(" ".join(text.split()))


def too_small_lines(size: tuple[int, int], least: tuple[int, int]) -> list[Line]:
    """What is said instead of all where there is no room."""
    said = f"at least {least[0]}x{least[1]}", f"this is {size[0]}x{size[1]}"
    return [[Span("too small", "bold")], *([Span(text)] for text in said)]


def empty_list_lines(state: ConnectionState, has_hidden: bool, options: ListOptions) -> list[Line]:
    """What to do where no session is shown."""
    if state == "connecting":
        return [[Span("  looking for sessions ...", "dim")]]
    if options.words:
        return [[Span("  No session fits the filter; Esc takes it away.")]]
    if has_hidden:
        return [[Span("  No session is live; a shows the older ones.")]]
    said = [
        "No session yet.",
        "",
        "`brimline setup` puts Brimline's hooks into your agents' settings,",
        "`brimline serve` is the daemon that hears them,",
        "`brimline demo` shows a recorded session.",
    ]
    return [[Span(f"  {text}")] for text in said]


_KEY_ROWS = (
    ("j k, arrows", "move, or scroll"),
    ("g G, space b", "first, last, a page on, a page back"),
    ("Enter", "show the session"),
    ("Esc", "back; takes the filter away"),
    ("/", "filter: words in agent, project, host, model, title or id"),
    ("s", "sort: fullest, latest, project, agent"),
    ("a", "also sessions that ended or are old"),
    ("t", "in a session: the next thread"),
    ("m u", "in a session: write a message, an urgent one"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
)

_SYMBOL_ROWS = (
    ("low medium high", "by the window: below 50%, from 50%, from 80%"),
    ("at limit", "the client compacts here: what turns a bar red"),
    ("over, 130%!", "more was sent than the window that we know"),
    (LEVEL_MARK, "on a bar: a level, at which the agent is told"),
    (LIMIT_MARK, "on a bar: the limit, at which the client compacts"),
    ("····", "unknown: before a reply, and after a compaction"),
    ("stale 3h", "nothing was heard for more than an hour"),
    ("handoff", "none, fresh, old or draft; ? without a daemon"),
    *((sign, f"below a chart: {kind}") for kind, sign in SYMBOLS.items()),
    (SEVERAL_SYMBOL, "below a chart: several"),
)


def _table_lines(rows: tuple[tuple[str, str], ...]) -> list[Line]:
    return [[Span(f"{name:<16}", "bold"), Span(text)] for name, text in rows]


HELP: list[Line] = [*_table_lines(_KEY_ROWS), [], *_table_lines(_SYMBOL_ROWS)]
