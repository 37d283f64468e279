"""Where opencode keeps its sessions and its settings, and forks of it theirs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from brimline.agents.opencode.database import sessions
from brimline.agents.opencode.json_storage import MAX_MESSAGE_BYTES, json_files, message_folders
from brimline.agents.opencode.records import CHATGPT_PLAN, SessionInfo
from brimline.agents.transcripts.client_settings import RegistryRows, read_registry, read_settings
from brimline.agents.transcripts.database import root_session
from brimline.agents.transcripts.source import MALFORMED, Places, Transcript, parse_time
from brimline.context.events import MAIN
from brimline.context.window import ClientSettings, RegistryModel
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import JsonDecoder
from brimline.files.regular_file import read_regular_file

_info = JsonDecoder(SessionInfo)

CONFIG_NAMES = ("opencode.json", "opencode.jsonc")
MEMORY_NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")


def _stored(storage: Path) -> Iterator[tuple[Path, SessionInfo]]:
    for folder in sorted(storage.glob("session/*")):
        if folder.name in ("message", "part"):
            continue
        for entry in json_files(folder):
            try:
                yield (
                    Path(entry.path),
                    _info.decode(read_regular_file(entry.path, MAX_MESSAGE_BYTES)),
                )
            except (OSError, *MALFORMED):
                continue


def _session_id(transcript: Transcript) -> str:
    return transcript.session or "" if transcript.thread == MAIN else transcript.thread


def _modified(path: Path) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


class _ModelLimit(msgspec.Struct, frozen=True):
    context: int | None = None
    input: int | None = None
    output: int | None = None


class _Experimental(msgspec.Struct, frozen=True):
    modes: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])


class _OpencodeModel(msgspec.Struct, frozen=True):
    limit: _ModelLimit = _ModelLimit()
    experimental: _Experimental | bool | None = None

    def ids(self, name: str) -> Iterator[str]:
        """The model's own id, and one for each of its modes."""
        yield name
        if isinstance(self.experimental, _Experimental):
            yield from (f"{name}-{mode}" for mode in self.experimental.modes)


class RegistryProvider(msgspec.Struct, frozen=True):
    """The models of a provider, in a configuration and in the registry."""

    models: dict[str, _OpencodeModel] = msgspec.field(default_factory=dict[str, _OpencodeModel])


class _CompactionConfig(msgspec.Struct, frozen=True):
    auto: bool | None = None
    reserved: int | None = None


class _OpencodeConfig(msgspec.Struct, frozen=True):
    provider: dict[str, RegistryProvider] = msgspec.field(
        default_factory=dict[str, RegistryProvider]
    )
    compaction: _CompactionConfig = _CompactionConfig()


def registry_rows(file: Mapping[str, RegistryProvider]) -> RegistryRows:
    """The rows of opencode's registry; models without a window are left out."""
    return {
        name: {
            id: RegistryModel(row.limit.context, row.limit.output, row.limit.input)
            for model, row in provider.models.items()
            if row.limit.context
            for id in row.ids(model)
        }
        for name, provider in file.items()
    }


def _folders_up_to_repository(project: str | None) -> list[Path]:
    """The project's folder and those above it, up to the repository's."""
    if not project or not Path(project).is_absolute():
        return []
    folders = [Path(project)]
    while not (folders[-1] / ".git").exists() and folders[-1].parent != folders[-1]:
        folders.append(folders[-1].parent)
    return folders


class OpencodePaths(msgspec.Struct, frozen=True):
    """Where opencode, or a fork of it, keeps its sessions and its settings.

    Its folders have its name, and its environment variables begin with it. A project's
    configuration is also in `project_folders`.
    """

    name: str = "opencode"
    config_names: tuple[str, ...] = CONFIG_NAMES
    project_folders: tuple[str, ...] = (".opencode",)

    def variable(self, places: Places, name: str) -> str:
        """Return the value of one of its environment variables; empty if unset."""
        return places.env.get(f"{self.name.upper()}_{name}", "")

    def root(self, places: Places) -> Path:
        return places.folder("XDG_DATA_HOME", ".local/share") / self.name

    def folders(self, places: Places) -> list[Path]:
        return [self.root(places)]

    def memory_files(self, places: Places, project: str | None) -> list[str]:
        """The instructions in the system prompt: the user's, and all of the project's of one name.

        Those that a setting names are not looked for.
        """
        user = (self.user_config(places) / "AGENTS.md", places.home / ".claude" / "CLAUDE.md")
        files = [file for file in user if file.is_file()][:1]
        folders = _folders_up_to_repository(project)
        for name in MEMORY_NAMES:
            if own := [folder / name for folder in folders if (folder / name).is_file()]:
                files += own
                break
        return [str(file) for file in files]

    def transcripts(self, places: Places) -> Iterator[Transcript]:
        """List every session: of the databases, then those that only the older storage has."""
        known: set[str] = set()
        for path in self.databases(places):
            for transcript in self._in_database(path):
                known.add(_session_id(transcript))
                yield transcript
        for transcript in self._in_folders(self.root(places)):
            if _session_id(transcript) not in known:
                yield transcript

    def databases(self, places: Places) -> list[Path]:
        """The database that a variable names, else one for each release channel."""
        if named := self.variable(places, "DB"):
            return [path] if (path := self.root(places) / named).exists() else []
        return sorted(self.root(places).glob(f"{self.name}*.db"))

    def _in_database(self, path: Path) -> Iterator[Transcript]:
        """An unreadable database is listed itself: its reader reports why."""
        try:
            infos = sessions(str(path))
        except UnreadableTranscript:
            yield Transcript(agent=self.name, path=str(path), modified=_modified(path), size=0)
            return
        parents = {info.id: info.parent for info in infos}
        for info in infos:
            modified = parse_time(info.time.updated) or _modified(path)
            yield self._transcript(path, modified, info, parents)

    def _in_folders(self, root: Path) -> Iterator[Transcript]:
        storages = [root / "storage", *sorted(root.glob("project/*/storage"))]
        stored = {info.id: (file, info) for storage in storages for file, info in _stored(storage)}
        parents = {id: info.parent for id, (_, info) in stored.items()}
        for file, info in stored.values():
            modified = max(_modified(file), _modified(message_folders(file)[0]))
            yield self._transcript(file, modified, info, parents)

    def _transcript(
        self, path: Path, modified: float, info: SessionInfo, parents: Mapping[str, str | None]
    ) -> Transcript:
        session = root_session(info.id, parents)
        thread = MAIN if session == info.id else info.id
        title = None if thread == MAIN else info.title
        return Transcript(self.name, str(path), modified, 0, session, thread, info.directory, title)

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        """Windows and compaction of its configuration: environment over project over user."""
        auto: bool | None = None
        reserved: int | None = None
        limits: dict[str, _ModelLimit] = {}
        for config in self._configs(places, project):
            if config.compaction.auto is not None:
                auto = config.compaction.auto
            if config.compaction.reserved is not None:
                reserved = config.compaction.reserved
            for name, provider in config.provider.items():
                own = {model: row.limit for model, row in provider.models.items()}
                for served_as in (name, CHATGPT_PLAN) if name == "openai" else (name,):
                    limits |= {f"{served_as}/{model}": limit for model, limit in own.items()}
        if self.variable(places, "DISABLE_AUTOCOMPACT").lower() in ("1", "true"):
            auto = False
        return ClientSettings(
            auto_compact=auto,
            windows={m: limit.context for m, limit in limits.items() if limit.context},
            max_outputs={m: limit.output for m, limit in limits.items() if limit.output},
            input_limits={m: limit.input for m, limit in limits.items() if limit.input},
            input_reserve=reserved,
            place=f"{self.name}.json",
            registry=read_registry(
                self._registry_file(places), dict[str, RegistryProvider], registry_rows
            ),
        )

    def _registry_file(self, places: Places) -> Path:
        if named := self.variable(places, "MODELS_PATH"):
            return Path(named)
        return places.folder("XDG_CACHE_HOME", ".cache") / self.name / "models.json"

    def _configs(self, places: Places, project: str | None) -> Iterator[_OpencodeConfig]:
        """Every existing configuration, in the order in which the client merges them."""
        content = self.variable(places, "CONFIG_CONTENT").encode("utf-8", "replace")
        for place in (*self._config_files(places, project), content):
            if config := read_settings(place, _OpencodeConfig):
                yield config

    def _config_files(self, places: Places, project: str | None) -> Iterator[Path]:
        user = self.user_config(places)
        yield from (user / name for name in ("config.json", *self.config_names))
        if named := self.variable(places, "CONFIG"):
            yield Path(named)
        for folder in reversed(_folders_up_to_repository(project)):
            yield from (folder / name for name in self.config_names)
            for own in self.project_folders:
                yield from (folder / own / name for name in self.config_names)
        if named := self.variable(places, "CONFIG_DIR"):
            yield from (Path(named) / name for name in self.config_names)

    def user_config(self, places: Places) -> Path:
        return places.folder("XDG_CONFIG_HOME", ".config") / self.name

    def config_file(self, folder: Path) -> Path:
        """Return the configuration of a folder, or where there would be one."""
        names = (name for name in self.config_names if (folder / name).is_file())
        return folder / next(names, self.config_names[0])


PATHS = OpencodePaths()
memory_files, transcripts = PATHS.memory_files, PATHS.transcripts
