"""Otter, a made-up agent: all that a new agent needs is a folder like this one."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Otter",
    home_folders=(".otter",),
    location_variables=("OTTER_HOME",),
    session_id_variables=("OTTER_SESSION",),
    start_command=("otter",),
)
