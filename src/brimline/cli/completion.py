"""`brimline completion`: scripts that complete commands, options and their values in a shell."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

import msgspec

from brimline.agents import agent_names
from brimline.cli.arguments import check_session, parse_agent
from brimline.cli.context import CommandContext
from brimline.terminal.text import strip_control

SESSIONS = "sessions"
PLAIN_ID = re.compile(r"\w[\w.-]*", re.ASCII)  # bash runs what `$(...)` in a completion names
LIST_SESSIONS = f"brimline completion {SESSIONS} 2>/dev/null"
INSTALL = """Bash, in ~/.bashrc:
  eval "$(brimline completion bash)"
Zsh, in ~/.zshrc after compinit:
  eval "$(brimline completion zsh)"
Fish, in ~/.config/fish/config.fish:
  brimline completion fish | source"""


class Values(msgspec.Struct, frozen=True):
    """What an argument takes: one of some words, a session, a file."""

    words: tuple[str, ...]
    sessions: bool
    files: bool


class Option(msgspec.Struct, frozen=True):
    """An option of a command; `values` is None if it takes none."""

    names: tuple[str, ...]
    description: str
    values: Values | None


class CommandSyntax(msgspec.Struct, frozen=True):
    """A command, and what it takes without an option."""

    name: str
    description: str
    options: tuple[Option, ...]
    values: Values


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = "brimline completion SHELL"
    to.epilog = f"{INSTALL}\n\n{to.epilog}"
    description = (
        f"the shell to complete in: {', '.join(SCRIPTS)}; "
        f"{SESSIONS}: list the ids and titles that the scripts complete"
    )
    to.add_argument("shell", choices=(*SCRIPTS, SESSIONS), metavar="SHELL", help=description)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Print the script of a shell, or what it completes."""
    lines = (
        _sessions(context) if options.shell == SESSIONS else SCRIPTS[options.shell](list_commands())
    )
    print("\n".join(lines))
    return 0


def _sessions(context: CommandContext) -> Iterator[str]:
    from brimline.cli.session_choice import list_sessions  # the scripts do without

    for each in list_sessions(context):
        if PLAIN_ID.fullmatch(each.id):
            yield f"{each.id}\t{strip_control(each.title or each.agent)}"


def list_commands() -> list[CommandSyntax]:
    """Every command with its options, as the parser has them."""
    from brimline.cli.commands import COMMANDS, actions_of, create_parser, parsers_of

    commands: list[CommandSyntax] = []
    for name, parser in parsers_of(create_parser()).items():
        actions = actions_of(parser)
        options = tuple(
            Option(
                tuple(one.option_strings),
                one.help or "",
                _values([one]) if one.nargs != 0 else None,
            )
            for one in actions
            if one.option_strings
        )
        values = _values([one for one in actions if not one.option_strings])
        commands.append(CommandSyntax(name, COMMANDS[name][0], options, values))
    return commands


def _values(actions: Sequence[argparse.Action]) -> Values:
    words = tuple(word for action in actions for word in _words(action))
    metavars = [str(action.metavar) for action in actions if _is_session(action)]
    files = not words and (not metavars or any("|" in metavar for metavar in metavars))
    return Values(words, bool(metavars), files)


def _is_session(action: argparse.Action) -> bool:
    return action.type is check_session or "SESSION" in str(action.metavar)


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.type is parse_agent:
        return agent_names()
    return tuple(map(str, action.choices or ()))


def _bash(commands: list[CommandSyntax]) -> Iterator[str]:
    yield f"_brimline_sessions() {{ [[ $word == -* ]] || {LIST_SESSIONS} | cut -f 1; }}"
    yield "_brimline() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words='
    yield '    case "${COMP_WORDS[1]} $before" in'
    for command in commands:
        for option in command.options:
            if option.values:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                words = _bash_words(option.values)
                completions = f'-W "{words}"' if words else "-f"
                yield f'    {patterns}) COMPREPLY=($(compgen {completions} -- "$word")); return ;;'
    yield "    esac"
    yield '    if [ "$COMP_CWORD" = 1 ]; then'
    yield f'        words="{" ".join(command.name for command in commands)} help"'
    yield '    else case "${COMP_WORDS[1]}" in'
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        yield f'        {command.name}) words="{_bash_words(command.values)} {names}" ;;'
    yield "    esac; fi"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield '    [ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))'
    yield "}"
    yield "complete -o filenames -F _brimline brimline"


def _bash_words(values: Values) -> str:
    return "$(_brimline_sessions)" if values.sessions else " ".join(values.words)


def _zsh(commands: list[CommandSyntax]) -> Iterator[str]:
    yield "#compdef brimline"
    yield "_brimline_sessions() {"
    yield "    local -a sessions"
    yield f'    sessions=(${{(f)"$({LIST_SESSIONS})"}})'
    yield "    sessions=(${${sessions//:/\\\\:}/$'\\t'/:})"
    yield "    _describe -V session sessions"
    yield "}"
    yield "_brimline() {"
    yield "    local -a commands"
    yield "    commands=("
    for command in commands:
        yield f"        {shlex.quote(f'{command.name}:{command.description}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then _describe command commands; return; fi"
    yield "    case $words[2] in"
    for command in commands:
        yield f"    {command.name}) _arguments \\"
        for option in command.options:
            value = f":value:{_zsh_action(option.values)}" if option.values else ""
            for name in option.names:
                description = (
                    option.description.replace("[", "(").replace("]", ")").replace(":", ";")
                )
                text = f"{name}[{description}]{value}"
                yield f"        {shlex.quote(text)} \\"
        yield f"        {shlex.quote(f'*:argument:{_zsh_action(command.values)}')} ;;"
    yield "    esac"
    yield "}"
    yield "# autoloaded from $fpath the file is the function; sourced, it only defines it"
    yield 'if [ "$funcstack[1]" = _brimline ]'
    yield 'then _brimline "$@"; else compdef _brimline brimline; fi'


def _zsh_action(values: Values) -> str:
    if values.words:
        return f"({' '.join(values.words)})"
    if values.sessions and values.files:
        return "{_brimline_sessions; _files}"
    return "_brimline_sessions" if values.sessions else "_files"


def _fish(commands: list[CommandSyntax]) -> Iterator[str]:
    for command in commands:
        yield (
            f"complete -c brimline -n __fish_use_subcommand -f -a {command.name} "
            f"-d {_quote_for_fish(command.description)}"
        )
        inside = f"complete -c brimline -n '__fish_seen_subcommand_from {command.name}'"
        if completions := _fish_completions(command.values):
            yield f"{inside}{completions}"
        for option in command.options:
            names = [
                f"-l {name[2:]}" if name[1] == "-" else f"-s {name[1]}" for name in option.names
            ]
            value = f" -r{_fish_completions(option.values)}" if option.values else ""
            yield (f"{inside} {' '.join(names)}{value} -d {_quote_for_fish(option.description)}")


def _fish_completions(values: Values) -> str:
    listed = f"({LIST_SESSIONS})" if values.sessions else " ".join(values.words)
    if not listed:
        return ""
    return f"{'' if values.files else ' -f'} -k -a {_quote_for_fish(listed)}"


def _quote_for_fish(text: str) -> str:
    """Between single quotes, fish knows two escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[list[CommandSyntax]], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
