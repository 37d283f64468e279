"""What an agent's client can do and how it is found, as data: `agents/<name>/__init__.py`."""

import msgspec

from brimline.agents.prompt_argument import PromptArgument

NEVER = r"(?!)"  # a pattern that matches nothing


class ComposerPatterns(msgspec.Struct, frozen=True, kw_only=True):
    """How a client draws its composer: regular expressions over the text of rows.

    A composer begins at the first row, upwards from the cursor, that matches `first` below rows
    that match `above`, and ends before the first rows that match `below`.
    """

    above: str = r".*\n.*"  # the two rows above
    first: str  # the beginning of the first row; the text starts after it
    rest: str = r".*"  # each other row
    below: str  # one or more rows
    cursor_visible: bool = False  # whether the client shows the terminal's own cursor
    placeholder: str | None = None  # the hint of an empty composer; None: any dim text
    busy_above: str = NEVER
    busy_below: str = NEVER
    compacting: str = NEVER
    queued: str = NEVER  # prompts that were submitted and not yet read by the agent


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent's client can do; the defaults are for agents about which we know less."""

    display_name: str
    tested_version: str | None = None  # the newest client that the tests were run with
    model_families: tuple[str, ...] = ()  # how the ids of its maker's models begin; none: any model
    runs_other_models: bool = False  # of other makers, through a gateway
    home_folders: tuple[str, ...] = ()  # below home; one of them exists if the client was used

    # Environment variables, by role.
    location_variables: tuple[str, ...] = ()  # move the client's files
    settings_variables: tuple[str, ...] = ()  # change the client's window or compaction
    limit_setting: str = "its settings"  # what moves the point at which the client compacts
    session_id_variables: tuple[str, ...] = ()  # the session's id, for commands the agent runs
    # The session's id, for all processes below the client; the first that is set counts.
    spawn_variables: tuple[str, ...] = ()
    marker_variables: tuple[str, ...] = ()  # set for commands that the agent runs
    hook_variables: tuple[str, ...] = ()  # set for hooks, and read from their requests
    hook_marker: str = ""  # of these, the one that is set also for hooks of another client's files
    inside_prefixes: tuple[str, ...] = ()  # a client started by the agent must not inherit these
    user_prefixes: tuple[str, ...] = ()  # except these, which are the user's settings

    countdown: str = NEVER  # in a transcript: how many tokens the client tells the model are left
    mcp_client_names: tuple[str, ...] = ()  # what it calls itself to MCP servers
    start_command: tuple[str, ...] = ()  # the interactive client, before its first prompt
    starts_with_prompt: bool = True  # False: it takes none with that command
    resume_command: tuple[str, ...] = ()  # the interactive client, before a session's id
    npm_packages: tuple[str, ...] = ()
    prompt_argument: PromptArgument | None = None  # None: `run` cannot give it another prompt
    composer: ComposerPatterns | None = None
    # Whether a hook confirms /clear at once; None: Brimline cannot clear this client.
    clear_confirmed_by_hook: bool | None = None
    answers_subagent_hooks: bool = True  # False: messages for subagents cannot be delivered
    session_ids_are_unique: bool = True  # False: sessions on other machines may have the same ids
    stream_reports_context: bool = True  # False: a run is measured by its transcript
    stream_ends_with_total: bool = False  # the stream's last line has the usage of the whole run
    # Categories of the ledger that the transcript has nothing of, and where their tokens are then.
    unrecorded_content: dict[str, str] = {}
    # How to disable an MCP server, a skill or an agent, by `{name}`, in the project only.
    disable_part: dict[str, str] = {}
