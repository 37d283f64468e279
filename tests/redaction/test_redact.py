"""Credentials are replaced by a mask, and ordinary text is left as it is."""

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.redaction import redact

from .canaries import FORMS, canaries, leaked

# Assembled here, so that no secret scanner takes this file for a leak.
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
def test_credential_is_masked_and_its_surroundings_are_left(text: str, left: str) -> None:
    assert redact(text) == left


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
        "commit 3f2a9c81d04b7e65f1a2b3c4d5e6f708192a3b4c\nAuthor: A B",
        "commit: 3f2a9c81d04b7e65f1a2b3c4d5e6f708192a3b4c",
        "HEAD is now at 3f2a9c8 Fix the parser",
        'sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
        "integrity: sha512-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9v==",
        "session: 01234567-89ab-4cde-8f01-23456789abcd",
        "id: toolu_01AbCdEfGhIjKlMnOpQrStUv",
        "HOME=/home/ci/tmp/01234567-89ab-4cde-8f01-23456789abcd",
        "out: /var/cache/7a/q1w2e3r4t5_zyx987wv0000ab/T/x",
        "PWD=/srv/app OLDPWD=/tmp/x1",
        "uv 0.8.13, brimline==1.2.3rc4, ^18.2.0-canary-3f2a9c8",
        "echo aGVsbG8= | base64 -d",
        "color: #ff00aa; background: #0f0f0f80;",
        "const handler = getUserByIdentifierFromCacheV2(request)",
        "name = TestParserReportsTheLineOfEveryBadRecord2",
        "--- PASS: TestParserReportsTheLineOfEveryBadRecordV2Read (0.00s)",
        'File "/usr/lib/python3.11/asyncio/runners.py", line 190, in run',
        "src/parse.c:1024:12:error:expected expression",
        "at Object.<anonymous> (/home/dev/app/index.js:12:34)",
        "| token | the word |\n|---|---|\n- **Password**: see the vault",
        "the password is wrong, and the token is expired",
        "The password is required. The secret is stored in the vault.",
        "the token is 42 characters long",
        "use bcrypt for the password hash, and OAuth2 for the token exchange",
        "sign in with Google / GitHub; login with email / password",
        "set the token limit to 4096; change the password policy to strict",
        "Both checks pass: `make lint` and `make test`",
        "password: MaybeSecret::missing(),\ntoken: Option<String>,",
        "client.api_key = api_key; self.clientKey = clientKey",
        "export ANTHROPIC_API_KEY=sk-ant-...",
        'deploy --token "$DEPLOY_TOKEN" --api-key ${{ secrets.API_KEY }}',
        "use the --token option to pass it",
        "password=%s token=%q secret={secret}",
        "permissions:\n  id-token: write",
        "date -u +%Y-%m-%dT%H:%M:%SZ; docker run -u 1000:1000 x",
        "In PEM it begins with -----BEGIN PRIVATE KEY----- and then the key.",
        "git@github.com:owner/repo.git, mailto:me@example.org",
        "feature/add-oauth2-token-refresh-2024-01-02",
        "La contraseña es incorrecta. La clave es entender el problema de ES6.",
        "clave: valor1\nLe mot de passe est trop court, 8 caractères au moins.",
        "Das Passwort ist falsch. Passwort vergessen? Kennwort: Bitte eingeben.",
        "A senha é obrigatória e deve ter de 8 a 20 caracteres.",
        "Неверный пароль. Пароль должен содержать от 8 до 20 символов.",
        "密码是错误的，请输入密码。密码长度为8-16位，密码不能为空",
        "パスワードは8文字以上です。パスワードを忘れた場合",
        "비밀번호는 8자 이상이어야 합니다. 비밀번호를 입력하세요",
        "passage: the bypass is enclave2, mot de passe oublié",
        "Please look at\nthis\n-----END CERTIFICATE-----\nor -----END PRIVATE KEY-----",
    ],
)
def test_ordinary_text_is_left(text: str) -> None:
    assert redact(text) == text


PIECES = ("password", "token", "DB_KEY", "=", ":", " ", "\n", "'", '"', "`", "x", "1", "***", "(",
          ",", "--", "#", "$", "|", "pass")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_name_of_a_secret_is_found(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@given(st.text("sk-ghp_= :@/'\"pasword\n" + LETTERS[:3]))
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("seed", range(5))
def test_no_part_of_a_generated_credential_is_readable(seed: int) -> None:
    for template in ("{}", "Before.\n{}\nAfter.", "  {}\r\n", "é: {}\né"):
        for canary in canaries(Random(seed)):
            redacted = redact(template.format(canary.text))
            assert not leaked(canary.secret, redacted), (canary.kind, redacted)


def test_generated_credentials_are_of_enough_different_kinds() -> None:
    assert len({kind for kind, _, _ in FORMS}) == len(FORMS) >= 60


def test_credentials_do_not_hide_each_other_in_one_text() -> None:
    samples = list(canaries(Random(9)))
    redacted = redact("\n\n".join(canary.text for canary in samples))
    assert not [canary.kind for canary in samples if leaked(canary.secret, redacted)]


def test_lines_around_a_secret_are_readable() -> None:
    for canary in canaries(Random(3)):
        if canary.kind not in ("gcp", "ssh"):  # keys without a last line are masked to the end
            redacted = redact(f"First line.\n{canary.text}\n\nLast line.")
            assert redacted.startswith("First line.\n"), canary.kind
            assert redacted.endswith("\n\nLast line."), (canary.kind, redacted)


@pytest.mark.parametrize("size", [300, 3_000, 30_000])
def test_long_secret_is_masked_to_its_end(size: int) -> None:
    word = "".join(Random(size).choices(LETTERS, k=size))
    for text in (f"sk-{word}", f"password: {word}", f"DB_PASSWORD={word}", f"Bearer {word}1"):
        assert not leaked(word, redact(text)[:200] + redact(text)[-200:]), text[:20]


def test_private_key_with_line_numbers_is_masked() -> None:
    lines = ["".join(Random(n).choices(LETTERS, k=64)) for n in range(4)]
    end = "-----END PRIVATE " + "KEY-----"
    for sign in ("→", "\t", ": ", "|"):
        text = (
            "\n".join(f"    {n}{sign}{line}" for n, line in enumerate(lines))
            + f"\n    4{sign}{end}"
        )
        assert not leaked(lines[0] + lines[3], redact(text), 20)
        assert not leaked(lines[1], redact(text)), redact(text)


def test_letter_with_a_longer_lower_case_does_not_move_the_mask() -> None:
    assert redact("İİİ password=hunter2 İ") == "İİİ password=*** İ"


def test_rules_are_loaded_when_needed() -> None:
    code = "import sys, brimline.redaction; print([m for m in sys.modules if 'redaction' in m])"
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "redaction.search" not in completed.stdout
