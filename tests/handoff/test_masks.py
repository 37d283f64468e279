"""Credentials that are plain to see are made unreadable, and little else."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.handoff import masked

# Put together here, so that nobody's scanner takes this file for a leak.
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"export ANTHROPIC_API_KEY=sk-ant-{LETTERS}", "export ANTHROPIC_API_KEY=***"),
        (f"echo sk-{LETTERS} | cat", "echo *** | cat"),
        (f"git clone https://x:ghp_{LETTERS}@host/r", "git clone https://x:***@host/r"),
        (f"gh auth login ghp_{LETTERS}", "gh auth login ***"),
        (f"github_pat_{LETTERS}", "***"),
        (f"glpat-{LETTERS}", "***"),
        ("aws AKIA" + "ABCDEFGHIJKLMNOP" + " s3", "aws *** s3"),
        (f"AIza{LETTERS}", "***"),
        (f"xoxb-{LETTERS}", "***"),
        (f"npm_{LETTERS}", "***"),
        (f"eyJ{LETTERS}.{LETTERS}.{LETTERS}", "***"),
        (f"curl -H 'Authorization: Bearer {LETTERS}' x", "curl -H 'Authorization: Bearer ***' x"),
        ("curl -H 'Authorization: Basic dTpw' x", "curl -H 'Authorization: Basic ***' x"),
        ("curl -u me:hunter2 x", "curl -u me:*** x"),
        ("psql postgres://me:hunter2@db/x", "psql postgres://me:***@db/x"),
        ("mysql --password hunter2 db", "mysql --password *** db"),
        ("mysql --password=hunter2 db", "mysql --password=*** db"),
        ("run password='a b' next", "run password=*** next"),
        ("DB_PASSWORD=hunter2 make", "DB_PASSWORD=*** make"),
        ('{"api_key": "hunter2"}', '{"api_key": "***"}'),
        ("password: hunter2", "password: ***"),
        ("  api_key: abcd1234\n  next: 1", "  api_key: ***\n  next: 1"),
        ("use token: tok_123 for it", "use token: *** for it"),
        ('secret = "s3cr3t"', 'secret = "***"'),
        ("PASSWORD = x", "PASSWORD = ***"),
        ("passphrase: opensesame # at home", "passphrase: *** # at home"),
        ("{password: p@ss&w(rd1}, next", "{password: ***}, next"),
        ("STRIPE_KEY: abc\r\nDB_PWD: x1 y", "STRIPE_KEY: ***\r\nDB_PWD: *** y"),
        ("X-Api-Key: abc123", "X-Api-Key: ***"),
        ("`password`: `opensesame`", "`password`: `***`"),
        ("'secret_key' => 'abc'; token := \"x y\"", "'secret_key' => '***'; token := \"***\""),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{LETTERS}\n-----END RSA PRIVATE KEY-----\nx", "***\nx"),
        (f"-----BEGIN PRIVATE KEY-----\n{LETTERS}\n", "***"),
        (f"{LETTERS}\n{LETTERS}=\n-----END RSA PRIVATE KEY-----\nx", "***\nx"),
        (f"use gsk_{LETTERS} here", "use *** here"),
        (f"ya29.{LETTERS}", "***"),
        (f"SG.{LETTERS}.{LETTERS}", "***"),
        (f"curl -H 'Authorization: {LETTERS}' x", "curl -H 'Authorization: ***' x"),
        ("> Authorization: abcd1234efgh\r\n> Host: x\r\n", "> Authorization: ***\r\n> Host: x\r\n"),
        ("curl -H 'Cookie: sid=a1; csrf=b2' x", "curl -H 'Cookie: sid=***' x"),
        ('{"set-cookie": "sid=a1; Path=/"}', '{"set-cookie": "sid=***"}'),
        ("REDIS_URL=redis://:hunter2@db:6379", "REDIS_URL=redis://:***@db:6379"),
        ("psql postgres://me:p@ss@db/x", "psql postgres://me:***@db/x"),
        ("curl 'https://x/c?sv=1&sig=a%2Bb&se=2'", "curl 'https://x/c?sv=1&sig=***&se=2'"),
        ("AccountName=x;AccountKey=abc==;Suffix=y", "AccountName=x;AccountKey=***;Suffix=y"),
        ("SECRET_KEY_BASE=abc rails s", "SECRET_KEY_BASE=*** rails s"),
        ("sshpass -p hunter2 ssh me@host", "sshpass -p *** ssh me@host"),
        ("mysqldump -u root -phunter2 db", "mysqldump -u root -p*** db"),
        ("mysql -p'hunter 2' db", "mysql -p*** db"),
        ("docker login -u me -p hunter2 host", "docker login -u me -p *** host"),
    ],
)
def test_masked(text: str, left: str) -> None:
    """A credential is masked, and what stands around it is left."""
    assert masked(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "pytest -q tests/test_tokens.py",
        "max_tokens=4096 and 3 tokens: fine",
        "Phase 1: basic bootstrap implementation",
        "the bearer of bad news",
        "def masked(token: str) -> None:",
        "tokens: 5, max_tokens: 4096, tokens = 12",
        "token: the next word",
        "Secret: keep it, and 2 more",
        "key: value1\nsort_key: name2",
        "pass: 12, fail: 2",
        "token: str\npassword: string;\nsecret: bool = False",
        "self.token = token\ntoken = parse2(text)\ntoken = tokens[1]",
        "token = request.headers.authorization;",
        "use crate::token::Token;",
        "if token == 5 or token != 6: pass",
        "password: ${PASSWORD_1}",
        "secret:\n  name: mine1",
        "sort --key=2 file; cd $PWD; risk-averse",
        "https://example.org:8080/path@2x.png",
        "mysql -u root -p db; mkdir -pv x",
        "docker run -p 8080:80 x && docker login host",
        "docker run -p 80:80 x\nplease log in: login",
        "authorization: required, see RFC 7235",
        "Cookie: a small cake",
        "Please look at\nthis\n-----END CERTIFICATE-----\nor -----END PRIVATE KEY-----",
    ],
)
def test_left(text: str) -> None:
    """Ordinary text is left as it is."""
    assert masked(text) == text


PIECES = ("password", "token", "DB_KEY", "=", ":", " ", "\n", "'", '"', "`", "x", "1", "***", "(",
          ",", "--", "#", "$", "|", "pass")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_names(text: str) -> None:
    """The same for what names and values can be put together to."""
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize(
    "piece",
    [
        "token:",
        "token: ",
        "password=",
        "_KEY",
        "secret:'",
        "token:a.",
        "pass",
        "key = (",
        "mysql ",
        "://:",
        "docker login -p ",
        "-----END PRIVATE KEY-----",
        "Cookie: a=",
        "authorization=1-",
        "a\n",
    ],
)
def test_long_text(piece: str) -> None:
    """Ten times the text takes about ten times as long, whatever it repeats."""
    short, long = (_seconds(piece * times) for times in (10_000, 100_000))
    assert long < 40 * short + 0.5


def _seconds(text: str) -> float:
    began = time.perf_counter()
    masked(text)
    return time.perf_counter() - began


@given(st.text("sk-ghp_= :@/'\"pasword\n" + LETTERS[:3]))
def test_any_text(text: str) -> None:
    """Any text can be masked, and a masked one stays as it is."""
    assert masked(masked(text)) == masked(text)
