"""What Otter can do."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Otter",
    home_folders=(".otter",),
    location_variables=("OTTER_HOME",),
    session_id_variables=("OTTER_SESSION",),
    start_command=("otter",),
)
