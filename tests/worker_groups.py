"""Which tests run in one worker, because they share a browser, a story, a daemon or client runs.

xdist's own marks have no effect with pytest 9.2: https://github.com/pytest-dev/pytest-xdist/issues/1386
"""

from xdist.scheduler import LoadScopeScheduling

GROUPS = (
    "tests/web/",
    "tests/release/",
    "tests/server/test_demo.py",
    "tests/server/test_prometheus.py",
    "tests/redaction/test_surfaces.py",
    "tests/clients/test_ledger_",
)
"""Paths: a folder is one group, of modules each is one."""


def find_group(nodeid: str) -> str:
    """Return the group of a test: a folder, a module or the test itself."""
    module = nodeid.partition("::")[0]
    for group in GROUPS:
        if module.startswith(group):
            return group if group.endswith("/") else module
    return nodeid


class GroupScheduling(LoadScopeScheduling):
    """Gives each test to the next free worker, and first the groups, the largest before others."""

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid)
