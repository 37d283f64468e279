"""Otter, a made-up agent: what its client can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Otter",
    home_folders=(".otter",),
    location_variables=("OTTER_HOME",),
    session_id_variables=("OTTER_SESSION",),
    start_command=("otter",),
)
