"""Where Kilo CLI keeps its sessions and its settings: as opencode, in folders of its own."""

from brimline.agents.opencode.paths import CONFIG_NAMES, OpencodePaths

PATHS = OpencodePaths(
    name="kilo",
    config_names=("kilo.json", "kilo.jsonc", *CONFIG_NAMES),
    project_folders=(".kilocode", ".kilo"),
)
memory_files, transcripts = PATHS.memory_files, PATHS.transcripts
