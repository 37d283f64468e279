"""The same command again and again, each time a fresh process."""

from collections.abc import Iterator

from brimline.run.iteration import Once, Plan
from brimline.run.output import Show
from brimline.run.result import Iteration
from brimline.run.signals import Signals


def iterate(plan: Plan, show: Show) -> Iterator[Iteration]:
    """Run the command as often as planned; what each run came to.

    It ends early after a run in which the agent said the text, that failed by itself, or in which
    a signal asked for the end. A run that was ended at a level is followed by the next.
    """
    with Signals(show.pause) as signals:
        for number in range(1, plan.iterations + 1):
            made = Once(plan, number, signals, show).run()
            yield made
            if made.said_it or made.failed or signals.ending is not None:
                return
