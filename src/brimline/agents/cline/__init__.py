"""Cline CLI: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Cline CLI",
    runs_other_models=True,
    tested_version="3.0.65",
    home_folders=(".cline",),
    location_variables=("CLINE_DIR", "CLINE_DATA_DIR", "CLINE_SESSION_DATA_DIR"),
    start_command=("cline",),
    resume_command=("cline", "--id"),
    npm_packages=("cline",),
    stream_reports_context=False,  # it does not say whose usage it is, nor of which model
)
