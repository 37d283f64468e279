"""The names of secrets: `token`, `API_KEY`, `password`, and the last one in other languages."""

# Every name of a secret contains one of these.
NAME_WORDS = ("pass", "pw", "secret", "token", "credential", "key", "clave", "contrase", "senha",
              "kennwort", "wachtwoord", "парол", "密码", "密碼", "口令", "パスワード", "暗証番号",
              "비밀번호")  # fmt: skip

# A password in languages with spaces between words, and in others. The name of a secret in a text
# is one of these or English; `clave` is a key too, and counts in sentences only.
SPACED_NAMES = (
    r"passwort|(?:(?<=mot[ _-]de[ _-])|(?<=palavra-))passe|contrase(?:ñ|n\u0303?)a|senha|kennwort"
    r"|wachtwoord|парол[ья]"
)
JOINED_NAMES = r"密[码碼]|口令|パスワード|暗証番号|비밀번호"


def is_secret_name(name: str) -> bool:
    """Return whether the value of a name may be a secret that looks like any other word."""
    return any(word in name.lower() for word in NAME_WORDS)
