"""`brimline completion`: scripts that complete commands, options and their values in a shell."""

import argparse
import shlex
from collections.abc import Callable, Iterator

import msgspec

from brimline.agents import agent_names
from brimline.cli.arguments import parse_agent
from brimline.cli.context import CommandContext

INSTALL = """Bash, in ~/.bashrc:
  eval "$(brimline completion bash)"
Zsh, in ~/.zshrc after compinit:
  eval "$(brimline completion zsh)"
Fish, in ~/.config/fish/config.fish:
  brimline completion fish | source"""


class Option(msgspec.Struct, frozen=True):
    """An option of a command; a value is one of `values`, or anything if there are none."""

    names: tuple[str, ...]
    description: str
    takes_value: bool
    values: tuple[str, ...]


class CommandSyntax(msgspec.Struct, frozen=True):
    """A command, and the words that it takes without an option."""

    name: str
    description: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = "brimline completion SHELL"
    to.epilog = f"{INSTALL}\n\n{to.epilog}"
    description = f"the shell to complete in: {', '.join(SCRIPTS)}"
    to.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=description)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    print("\n".join(SCRIPTS[options.shell](list_commands())))
    return 0


def list_commands() -> list[CommandSyntax]:
    """Every command with its options, as the parser has them."""
    from brimline.cli.commands import COMMANDS, actions_of, create_parser, parsers_of

    commands: list[CommandSyntax] = []
    for name, parser in parsers_of(create_parser()).items():
        actions = actions_of(parser)
        options = tuple(
            Option(tuple(one.option_strings), one.help or "", one.nargs != 0, _values(one))
            for one in actions
            if one.option_strings
        )
        words = tuple(word for one in actions if not one.option_strings for word in _values(one))
        commands.append(CommandSyntax(name, COMMANDS[name][0], options, words))
    return commands


def _values(action: argparse.Action) -> tuple[str, ...]:
    if action.type is parse_agent:
        return agent_names()
    return tuple(map(str, action.choices or ()))


def _bash(commands: list[CommandSyntax]) -> Iterator[str]:
    yield "_brimline() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words='
    yield '    case "${COMP_WORDS[1]} $before" in'
    for command in commands:
        for option in command.options:
            if option.takes_value:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                completions = f'-W "{" ".join(option.values)}"' if option.values else "-f"
                yield f'    {patterns}) COMPREPLY=($(compgen {completions} -- "$word")); return ;;'
    yield "    esac"
    yield '    if [ "$COMP_CWORD" = 1 ]; then'
    yield f'        words="{" ".join(command.name for command in commands)} help"'
    yield '    else case "${COMP_WORDS[1]}" in'
    for command in commands:
        words = [*command.words, *(name for option in command.options for name in option.names)]
        yield f'        {command.name}) words="{" ".join(words)}" ;;'
    yield "    esac; fi"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield '    [ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))'
    yield "}"
    yield "complete -o filenames -F _brimline brimline"


def _zsh(commands: list[CommandSyntax]) -> Iterator[str]:
    yield "#compdef brimline"
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
            value = f":value:({' '.join(option.values)})" if option.values else ":value:_files"
            for name in option.names:
                description = (
                    option.description.replace("[", "(").replace("]", ")").replace(":", ";")
                )
                text = f"{name}[{description}]{value if option.takes_value else ''}"
                yield f"        {shlex.quote(text)} \\"
        words = f"({' '.join(command.words)})" if command.words else "_files"
        yield f"        {shlex.quote(f'*:argument:{words}')} ;;"
    yield "    esac"
    yield "}"
    yield "# autoloaded from $fpath the file is the function; sourced, it only defines it"
    yield 'if [ "$funcstack[1]" = _brimline ]'
    yield 'then _brimline "$@"; else compdef _brimline brimline; fi'


def _fish(commands: list[CommandSyntax]) -> Iterator[str]:
    for command in commands:
        yield (
            f"complete -c brimline -n __fish_use_subcommand -f -a {command.name} "
            f"-d {_quote_for_fish(command.description)}"
        )
        inside = f"complete -c brimline -n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            yield f"{inside} -f -a {_quote_for_fish(' '.join(command.words))}"
        for option in command.options:
            names = [
                f"-l {name[2:]}" if name[1] == "-" else f"-s {name[1]}" for name in option.names
            ]
            value = f" -x -a {_quote_for_fish(' '.join(option.values))}" if option.values else " -r"
            yield (
                f"{inside} {' '.join(names)}{value if option.takes_value else ''} "
                f"-d {_quote_for_fish(option.description)}"
            )


def _quote_for_fish(text: str) -> str:
    """Between single quotes, fish knows two escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[list[CommandSyntax]], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
