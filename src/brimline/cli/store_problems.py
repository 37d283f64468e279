"""One line on standard error for each problem of the store that is to be shown."""

import sys

from brimline.cli.context import Context
from brimline.paint import clean
from brimline.settings import state_dir
from brimline.store.problems import open_problems


def print_store_problems(context: Context) -> None:
    """Print what happened to the store, also if no daemon runs."""
    state = state_dir(context.places.env, context.places.home)
    for problem in open_problems(state, context.now):
        print(f"brimline: {clean(problem.what)} {clean(problem.advice)}", file=sys.stderr)
