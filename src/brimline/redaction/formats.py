"""Formats of credentials that detect-secrets has no rule for, or one that is too narrow."""

import re

from brimline.redaction.rules import SecretRule

# Follows most prefixes; the digit excludes names with the same prefix.
_RANDOM = r"(?=[A-Za-z_.=-]{0,80}[0-9])[A-Za-z0-9_.=-]{16,1024}"

_OPTIONS = r"[^\s|;&]{0,20}\s(?:[^\n|;&]{0,300}\s)?"  # between a command and one of its options

# The value of an option, in the syntax of a shell.
_VALUE = r"('[^'\n]{1,500}'|\"[^\"\n]{1,500}\"|[^\s'\"*]\S{0,500})"

_QUOTE = r"(?:\\?['\"])?"  # around a key or a value in JSON, also in JSON within a string


def _prefix(id: str, *prefixes: str, rest: str = _RANDOM) -> SecretRule:
    """Return a rule for a secret that begins with one of these prefixes."""
    either = "|".join(map(re.escape, prefixes))
    return SecretRule(id, prefixes, rf"(?<![A-Za-z0-9])(?:{either}){rest}", in_word=True)


def _within(
    id: str, *keywords: str, regex: str, ignore_case: bool = False, more_lines: bool = False
) -> SecretRule:
    """Return a rule for a format whose only group is the secret."""
    return SecretRule(id, keywords, regex, 1, ignore_case, more_lines=more_lines)


# fmt: off
_KEYS = (
    _prefix("sk-key", "sk-", rest=r"(?=[A-Za-z_-]{0,80}[0-9])[A-Za-z0-9_-]{8,1024}"),
    _prefix("stripe", "sk_live_", "sk_test_", "rk_live_", "rk_test_", rest=r"[A-Za-z0-9]{8,256}"),
    _prefix("github", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    _prefix("gitlab", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "gloas-"),
    _prefix("google-api", "AIza", rest=r"[0-9A-Za-z_-]{30,256}"),
    _prefix("google-oauth", "ya29.", "GOCSPX-"),
    SecretRule("google-refresh", ("1//0",), rf"(?<![A-Za-z0-9])1//0{_RANDOM}"),
    _prefix("slack", "xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.xoxp-", "xoxp-", "xoxr-",
            "xoxs-", "xapp-", rest=r"[A-Za-z0-9-]{8,256}"),
    _prefix("aws", "AKIA", "ASIA", rest=r"[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _prefix("npm", "npm_", "hf_", "r8_", rest=r"[A-Za-z0-9]{20,256}"),
    _prefix("pypi", "pypi-"),
    _prefix("json-web-token", "eyJ", rest=r"[A-Za-z0-9_-]{8,1024}\.[A-Za-z0-9_-]{8,1024}"),
    _prefix("sendgrid", "SG.", rest=r"[A-Za-z0-9_-]{16,256}\.[A-Za-z0-9_-]{16,256}"),
    _prefix("age", "AGE-SECRET-KEY-1", rest=r"[0-9A-Z]{16,128}"),
    _prefix("vault", "hvs.", "hvb.", "hvr."),
    _prefix("square", "sq0atp-", "sq0csp-", "EAAA"),
    _prefix("model-providers", "gsk_", "xai-", "pplx-", "nvapi-", "tgp_v1_"),
    _prefix("databricks-pulumi", "dapi", "pul-", rest=r"[a-f0-9]{32,64}"),
    _prefix("hosting", "dop_v1_", "doo_v1_", "dor_v1_", "dp.pt.", "dp.st.", "nfp_", "HRKU-",
            "pscale_tkn_", "pscale_pw_", "sbp_", "tskey-", "FlyV1 ", "fm2_", "napi_"),
    _prefix("developer-tools", "ATATT3", "ATBB", "figd_", "glsa_", "glc_", "lin_api_", "NRAK-",
            "ntn_", "PMAK-", "rubygems_", "shpat_", "shpca_", "shppa_", "shpss_", "sntrys_",
            "sntryu_", "whsec_", "phc_", "phx_", "dckr_pat_"),
    SecretRule("terraform", (".atlasv1.",), r"[A-Za-z0-9]{10,20}\.atlasv1\.[A-Za-z0-9_=-]{20,256}"),
    SecretRule("azure-ad", ("Q~",), r"(?<![\w~.-])[\w~.-]{3}[0-9]Q~[\w~.-]{31,34}"),
)

_ADDRESSES = (
    _within("discord-webhook", "/api/webhooks/", regex=r"/api/webhooks/\d{1,30}/([\w-]{16,256})"),
    _within("slack-webhook", "hooks.slack.com",
            regex=r"hooks\.slack\.com/\w{1,20}/([\w/-]{8,256})"),
    _within("teams-webhook", "/IncomingWebhook/", regex=r"/IncomingWebhook/([\w/-]{8,256})"),
    _within("telegram-url", "telegram.org/bot", regex=r"telegram\.org/bot([\w:-]{8,256})"),
    _within("url-password", "://", regex=r"://[^\s/:@]{0,100}:([^\s/'\"]{1,500})@"),
    _within("url-token", "://",
            regex=r"://(?=[A-Za-z_-]{0,80}[0-9])([A-Za-z0-9_-]{20,500})(?::[^\s/@]{0,100})?@"),
    _within("url-signature", "sig=", "signature=", "x-amz-security-token=", ignore_case=True,
            regex=r"[?&](?:sig|signature|x-amz-signature|x-amz-security-token)=([^\s&'\"]{1,4096})"),
)

_HEADERS = (
    _within("authorization-scheme", "authorization", ignore_case=True,
            regex=rf"\bauthorization{_QUOTE}\s{{0,9}}[:=]\s{{0,9}}{_QUOTE}"
            r"[\w-]{1,40}[ \t]{1,9}([^\s'\"\\]{1,4096})"),
    _within("authorization", "authorization", ignore_case=True,
            regex=rf"\bauthorization{_QUOTE}\s{{0,9}}[:=]\s{{0,9}}{_QUOTE}"
            r"(?=[^\s'\"]{0,100}\d)([A-Za-z0-9+/=._~-]{8,512}+)(?=['\"\\\r\n]|\Z)"),
    _within("bearer", "bearer", ignore_case=True,
            regex=r"\bbearer\s{1,9}(?=[^\s'\"]{0,100}\d)([A-Za-z0-9+/=._~-]{8,4096})"),
    _within("cookie", "cookie", ignore_case=True,
            regex=rf"\b(?:set-)?cookie{_QUOTE}:\s{{0,9}}{_QUOTE}[^\s=;'\"]{{1,100}}="
            r"([^\r\n'\"\\]{1,4096})"),
)

_FILES = (
    _within("netrc", "machine", "default login", more_lines=True,
            regex=r"\b(?:machine\s{1,9}\S{1,255}|default)\s{1,20}"
            r"(?:(?:login|account)\s{1,9}\S{1,255}\s{1,20}){0,2}password\s{1,9}(\S{1,500})"),
    # PostgreSQL's ports and its poolers': with any other, compilers' errors would match.
    _within("pgpass", ":543", ":643", ":*:",
            regex=r"(?<![\w.*:-])[\w.*-]{1,255}:(?:[56]43\d|\*):(?!\d{1,9}:)[\w*-]{1,64}:"
            r"[\w.*@-]{1,64}:([^\s'\"]{4,500})"),
    _within("docker-auth", "auth",
            regex=r"(?:['\"]auth\\?['\"]\s{0,9}:\s{0,9}\\?['\"]|\b_auth\s{0,9}=\s{0,9}\"?)"
            r"(?=[a-z]{0,80}[A-Z0-9+/=])([A-Za-z0-9+/]{8,2048}={0,2})"),
    _within("kube-config", "-data",
            regex=rf"client-(?:key|certificate)-data{_QUOTE}\s{{0,9}}:\s{{0,9}}{_QUOTE}"
            r"([\w+/=-]{8,4096})"),
    _within("putty", "Private-Lines", more_lines=True,
            regex=r"Private-Lines: \d{1,4}\s{1,9}"
            r"((?:[A-Za-z0-9+/=]{1,80}[ \t\r]{0,3}(?:\n|\Z)){1,60})"),
    _within("xml", "password>", "passphrase>", "secret>", "token>", "key>", ignore_case=True,
            regex=r"<\w{0,40}(?:password|passphrase|secret|token|api_?key)>\s{0,9}"
            r"([^<\s][^<]{0,4096})</"),
)

_COMMANDS = (
    _within("sshpass", "sshpass", regex=rf"\bsshpass\s{{1,9}}-p\s{{0,9}}{_VALUE}"),
    _within("mysql", "mysql", "mariadb", regex=rf"\b(?:mysql|mariadb){_OPTIONS}-p{_VALUE}"),
    _within("mongo", "mongo", regex=rf"\bmongo{_OPTIONS}-p[ =]{_VALUE}"),
    _within("redis", "redis-cli", regex=rf"\bredis-cli{_OPTIONS}-a[ =]{_VALUE}"),
    _within("login", " login",
            regex=rf"\b(?:docker|podman|az|helm|registry) login{_OPTIONS}-p[ =]{_VALUE}"),
    _within("password-stdin", "--password-stdin",
            regex=rf"\b(?:echo|printf)(?: -n)? {_VALUE}\s{{1,9}}\|[^\n|]{{1,300}}--password-stdin"),
    _within("htpasswd", "htpasswd",
            regex=r"\bhtpasswd\s{1,9}-\w{0,9}b\w{0,9}(?:\s{1,9}\S{1,255}){2}\s{1,9}" + _VALUE),
    _within("kubectl-literal", "--from-literal",
            regex=r"--from-literal[ =][\w.-]{1,100}=([^\s]{1,500})"),
    _within("aws-configure", "aws configure set",
            regex=rf"\baws configure set \S{{0,60}}(?:secret_access_key|token) {_VALUE}"),
    _within("gh-secret", "secret set",
            regex=rf"\bsecret set [^\n|;&]{{1,200}}(?:--body|-b)[ =]{_VALUE}"),
    _within("zip", "zip ", regex=rf"\b(?:un)?zip{_OPTIONS}-P[ =]{_VALUE}"),
    _within("openssl", " pass:", regex=r"\s-pass(?:in|out)? pass:(\S{1,500})"),
    _within("samba", " -U", "--user",
            regex=r"\s(?:-U|--user)[ =]['\"]?[\w.\\-]{1,100}%([^\s'\"]{1,500})"),
    _within("user-option", " -u", "--user",
            regex=r"\s(?:-u|--user)[ =]?['\"]?[^\s:'\"/=+%]{1,100}:"
            r"(?!\$|\d{1,6}(?:\s|\Z))([^\s'\"]{1,500})"),
)
# fmt: on

OWN_RULES: tuple[SecretRule, ...] = (*_KEYS, *_ADDRESSES, *_HEADERS, *_FILES, *_COMMANDS)
