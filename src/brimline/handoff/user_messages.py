"""Tell the user's messages that say something from acknowledgements, and find their constraints."""

import re

# A message of fewer letters in a script without spaces says nothing: 继续, 好的, はい.
MIN_UNSPACED_LETTERS = 5

# Words that add nothing to an acknowledgement, in English, German, Spanish, Portuguese and French.
# Of two letters all do.
_FILLERS = """
all and any are can did for fun got hey huh its let lol not now one see the too try was way why wow
yea yep yes yup you again agreed ahead alright awesome continue cool correct exactly fine good great
hello indeed just keep likely looks love next nice okay perfect please proceed right sounds sure
thank thanks that then this well what with yeah yepp your
bitte danke genau gern gerne mach weiter
claro continúa gracias sigue vale obrigado continua
accord continuez merci parfait
"""
FILLERS = frozenset(_FILLERS.split())

# In the beginning of the first prompt of a session that got the whole document with it.
MAX_TITLE_CHARS = 400  # its first line is the title
CONTINUED_TEXT = "You continue the work of an earlier session, whose context was nearly full."
CONTINUATION_END = "and continue from where you left off."
_CONTINUATION = re.compile(rf"Read .+ {re.escape(CONTINUATION_END)}")
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
# A name, a path, an option, code.
_NAME = re.compile(r"[^\W\d]\d|\d[^\W\d]|\d{2}|\w[/_.@]\w|--\w|`[^`]+`|#\d|/\w{3}")
_CONSTRAINT = re.compile(
    r"\b(?:always|at (?:least|most)|avoid|but not|cannot|can't|do not|don't|except|exactly|instead"
    r"|keep|leave|make sure|maximum|minimum|must|never|no|not|only|rather than|should|shouldn't"
    r"|stop|unless|without"
    r"|kein\w*|nicht|niemals|nur|immer|jamais|toujours|nunca|siempre|sin|solo|sempre)\b"
    r"|不要|必须|绝不|不能|只能|禁止|ないで|必ず|なければ",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")


def continuation_prompt(path: str) -> str:
    """Return the first prompt of a session that continues from a document."""
    return f"Read {path} {CONTINUATION_END}"


def is_continuation(text: str) -> bool:
    """Return whether a message is a prompt with which Brimline continued a session."""
    return CONTINUED_TEXT in text[:MAX_TITLE_CHARS] or _CONTINUATION.fullmatch(text) is not None


def has_continuation(text: str) -> bool:
    """Return whether a text has such a prompt in it, as when the user typed on behind it."""
    return CONTINUED_TEXT in text or CONTINUATION_END in text


def says_something(text: str) -> bool:
    """Return whether a message is more than an acknowledgement such as "yep" or "ok, continue".

    By its shape, in any language: it has a name, a number or code, or two words. One of these has
    four letters and is no filler, or two of them have three.
    """
    if _NAME.search(text):
        return True
    if unspaced := _UNSPACED.findall(text):
        return len(unspaced) >= MIN_UNSPACED_LETTERS
    words = _WORD.findall(text.lower())
    lengths = sorted(min(len(word), 4) for word in words if word not in FILLERS)
    return len(words) > 1 and (lengths[-1:] == [4] or lengths[-2:] == [3, 3])


def has_constraint(text: str) -> bool:
    """Return whether a part of a message limits what the agent may do, or has a number."""
    return bool(_CONSTRAINT.search(text) or _NUMBER.search(text))
