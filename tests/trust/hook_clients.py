"""The hook clients that agents run: the compiled one if there is one, and Python's."""

import functools

from brimline.agents.hook_command import COMPILED_CLIENT
from hooks.agent import CLIENT, compiled_client, python_client


@functools.cache
def client_commands() -> dict[str, list[str]]:
    """The command of each client, by its name."""
    compiled = CLIENT.with_name(COMPILED_CLIENT)
    found = {"compiled": compiled_client(compiled)} if compiled.exists() else {}
    return found | {"Python": python_client()}
