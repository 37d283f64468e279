"""The last problem of the store on standard error."""

import sys

from brimline.cli.context import Context
from brimline.store.problems import open_problems
from brimline.terminal.text import count_of, strip_control


def print_store_problems(context: Context) -> None:
    """Print what happened to the store last, also if no daemon runs."""
    problems = open_problems(context.state, context.now)
    if not problems:
        return
    text = f"{problems[-1].what} {problems[-1].advice}"
    if len(problems) > 1:
        text += f" `brimline doctor` lists {count_of(len(problems), 'problem')}."
    print(f"brimline: {strip_control(text)}", file=sys.stderr)
