"""Generated credentials, random at every call, in the forms in which sessions show them."""

import base64
import string
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

LOWER = string.ascii_lowercase + string.digits
WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
BASE64 = WORD + "+/"
URL = WORD + "_-"


class Canary(NamedTuple):
    """A text, and the secret in it that must not be shown."""

    kind: str
    text: str
    secret: str


Make = Callable[[Random], str]


def _random(alphabet: str, size: int) -> Make:
    """A random word with a digit and a letter, as nearly all that are random have."""

    def make(random: Random) -> str:
        while True:
            word = "".join(random.choices(alphabet, k=size))
            if any(map(str.isdigit, word)) and any(map(str.isalpha, word)):
                return word

    return make


def _password(random: Random) -> str:
    return "".join(random.choices(string.ascii_lowercase, k=6)) + str(random.randint(10, 99)) + "!x"


def _strong_password(random: Random) -> str:
    return f"Xq{_random(WORD, 8)(random)}7b"


def _word_password(random: Random) -> str:
    return "".join(random.choices("bcdfgklmprstz", k=7)) + "oo"


def _basic(random: Random) -> str:
    return base64.b64encode(f"user:{_random(WORD, 18)(random)}".encode()).decode()


def _lines(random: Random) -> str:
    return "\n".join("".join(random.choices(BASE64, k=64)) for _ in range(6))


# The prefixes are cut in two, so that no scanner takes this file for a leak.
FORMS: tuple[tuple[str, str, Make], ...] = (
    ("anthropic", "use sk-" + "ant-api03-{}", _random(URL, 80)),
    ("openai", "key sk-" + "proj-{}", _random(URL, 60)),
    ("openai legacy", "sk-" + "{}", _random(WORD, 48)),
    ("google", "AI" + "za{}", _random(URL, 35)),
    ("google oauth", "GOC" + "SPX-{}", _random(URL, 28)),
    ("google access", "ya" + "29.{}", _random(URL, 60)),
    ("github", "gh" + "p_{}", _random(WORD, 36)),
    ("github app", "gh" + "s_{}", _random(WORD, 36)),
    ("github fine", "github" + "_pat_{}", _random(WORD, 60)),
    ("gitlab", "gl" + "pat-{}", _random(URL, 20)),
    ("aws id", "id AK" + "IA{}", _random("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    ("aws file", "[default]\naws_secret_access_key = {}", _random(BASE64, 40)),
    ("aws session", "export AWS_SESSION_TOKEN={}", _random(BASE64, 200)),
    ("stripe", "sk" + "_live_{}", _random(WORD, 24)),
    ("slack bot", "xo" + "xb-123456789012-{}", _random(WORD, 24)),
    ("slack hook", "https://hooks.slack" + ".com/services/T0AB1/B0CD2/{}", _random(WORD, 24)),
    ("discord bot", "M" + "T{}", lambda r: ".".join(_random(URL, n)(r) for n in (22, 6, 27))),
    ("discord hook", "https://discord.com/api/web" + "hooks/123456/{}", _random(URL, 68)),
    ("telegram", "bot 123456789:{}", _random(URL, 35)),
    ("telegram url", "https://api.telegram.org/bot{}/getMe", _random(URL, 35)),
    ("twilio sid", "AC{}", _random(HEX, 32)),
    ("twilio key", "SK{}", _random(HEX, 32)),
    ("twilio token", "TWILIO_AUTH_TOKEN={}", _random(HEX, 32)),
    ("sendgrid", "S" + "G.{}", lambda r: ".".join(_random(URL, n)(r) for n in (22, 43))),
    ("mailchimp", "{}-us14", _random(HEX, 32)),
    ("npm", "npm" + "_{}", _random(WORD, 36)),
    ("npmrc", "//registry.example.org/:_authToken={}", _random(HEX, 36)),
    ("npmrc basic", "_auth={}", _basic),
    ("pypi", "pypi-" + "AgEI{}", _random(URL, 80)),
    ("pypirc", "[pypi]\nusername = me\npassword = {}", _password),
    ("hugging face", "h" + "f_{}", _random(WORD, 34)),
    ("age", "AGE-SECRET" + "-KEY-1{}", _random("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    ("vault", "hv" + "s.{}", _random(URL, 90)),
    ("terraform", "abcdefgh1jklmn.atl" + "asv1.{}", _random(URL, 60)),
    ("azure storage", "AccountName=x;AccountKey={};EndpointSuffix=y", _random(BASE64, 86)),
    ("azure bus", "SharedAccessKeyName=r;SharedAccessKey={}", _random(BASE64, 43)),
    ("jwt", "ey" + "J{}", lambda r: ".".join(_random(URL, n)(r) for n in (30, 90, 43))),
    ("gcp", '{{"private_key": "-----BEGIN PRIVATE ' + 'KEY-----\\n{}"}}', _random(BASE64, 300)),
    ("pem", "-----BEGIN RSA PRIVATE " + "KEY-----\n{}\n-----END RSA PRIVATE KEY-----", _lines),
    ("ssh", "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n{}\n", _lines),
    ("pem cut", "{}\n-----END EC PRIVATE " + "KEY-----", _lines),
    ("putty", "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 6\n{}", _lines),
    ("netrc", "machine api.example.org login me password {}", _password),
    ("netrc lines", "machine api.example.org\n  login me\n  password {}", _word_password),
    ("docker", '{{"auths": {{"ghcr.io": {{"auth": "{}"}}}}}}', _basic),
    ("kube key", "    client-key-data: {}", _random(BASE64, 400)),
    ("kube certificate", "    client-certificate-data: {}", _random(BASE64, 400)),
    ("kube token", "  user:\n    token: {}", _random(URL, 60)),
    ("pgpass", "db.example.org:5432:app:me:{}", _password),
    ("env", "DATABASE_PASSWORD={}", _word_password),
    ("export", "export MY_SECRET='{}'", _password),
    ("yaml", "credentials: {}", _password),
    ("yaml block", "password: |\n  {}\nnext: 1", _word_password),
    ("toml", 'api_key = "{}"', _random(LOWER, 24)),
    ("ini", "secret={}", _word_password),
    ("json", '{{"clientSecret": "{}"}}', _random(LOWER, 24)),
    ("json in json", '"{{\\"password\\": \\"{}\\"}}"', _word_password),
    ("xml", "<password>{}</password>", _word_password),
    ("url", "postgres://me:{}@db.example.org/app", _password),
    ("url token", "git clone https://{}@git.example.org/r", _random(LOWER, 40)),
    ("signed url", "https://x.blob.example.org/c?sv=1&sig={}&se=2", _random(WORD, 43)),
    ("bearer", "curl -H 'Authorization: Bearer {}' x", _random(URL, 40)),
    ("basic", "Authorization: Basic {}", _basic),
    ("cookie", "Cookie: sid={}; a=b", _random(WORD, 30)),
    ("api header", "X-Api-Key: {}", _random(LOWER, 24)),
    ("curl", "curl -u me:{} https://example.org", _password),
    ("flag", "deploy --password {} now", _word_password),
    ("flag token", "deploy --auth-token={}", _random(LOWER, 24)),
    ("mysql", "mysql -u root -p{} db", _password),
    ("sshpass", "sshpass -p {} ssh me@host", _password),
    ("redis", "redis-cli -h db -a {} ping", _password),
    ("login", "echo {} | docker login -u me --password-stdin", _password),
    ("random name", "DATADOG={}", _random(HEX, 32)),
    ("random value", 'const x = "{}"', _random(WORD, 40)),
    ("prose is", "the password is {}", _password),
    ("prose word", "My password is {}.", _word_password),
    ("prose use", "use {} as the password", _password),
    ("prose set", "please change the admin password to {}", _password),
    ("prose token", "my token: {}", _random(LOWER, 24)),
    ("prose login", "log in with admin / {}", _password),
    ("prose changed", "the db password was changed to {} yesterday", _password),
    ("prose colon", "the password is: {}", _password),
    ("prose beside", "Token {}", _random(LOWER, 30)),
    ("prose note", "API token (expires soon): {}", _random(LOWER, 30)),
    ("prose dash", "Password - {}", _strong_password),
    ("prose arrow", "password → {}", _strong_password),
    ("prose pw", "here is the root pw: {}", _password),
    ("markdown bold", "**Password:** {}", _strong_password),
    ("markdown code", "- password `{}`", _strong_password),
    ("markdown table", "| password | {} |", _strong_password),
    ("connection string", "Server=x;User Id=sa;Password={};", _password),
    ("powershell", '$env:API_KEY = "{}"', _random(LOWER, 24)),
    ("csh", "setenv API_KEY {}", _random(LOWER, 24)),
    ("python", "os.environ['API_KEY'] = '{}'", _random(LOWER, 24)),
    ("swift", 'let apiKey: String = "{}"', _random(LOWER, 24)),
    ("java option", "java -DdbPassword={} -jar x.jar", _word_password),
    ("docker env", "docker run -e MYSQL_ROOT_PASSWORD={} mysql", _word_password),
    ("kubectl", "kubectl create secret generic x --from-literal=key={}", _password),
    ("aws cli", "aws configure set aws_secret_access_key {}", _random(BASE64, 40)),
    ("gh cli", "gh secret set FOO --body {}", _password),
    ("json lines", '{{"password":\n  "{}"}}', _word_password),
    ("otp", "otpauth://totp/x?secret={}&issuer=y", _random("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    ("wireguard", "PrivateKey = {}=", _random(BASE64, 43)),
    ("query", "GET /x?access_token={}&y=1", _random(LOWER, 24)),
    ("properties", "spring.datasource.password: {}", _word_password),
    ("upper pass", "DB_PASS: {}", _word_password),
    ("ethereum", "PRIVATE_KEY=0x{}", _random(HEX, 64)),
    ("prose quoted", "the password for staging is `{}`", _word_password),
    ("spanish", "la contraseña es {}", _password),
    ("spanish whose", "La contraseña de la base de datos es {}.", _password),
    ("spanish set", "cambia la contraseña a {} por favor", _password),
    ("spanish key", "la clave del servidor es {}, gracias", _password),
    ("spanish name", "contraseña: {}", _word_password),
    ("french", "le mot de passe est {}", _password),
    ("french whose", "Le mot de passe de la base est : {}", _password),
    ("french name", "Mot de passe\u00a0: {}", _word_password),
    ("french use", "utilise {} comme mot de passe", _password),
    ("german", "Das Passwort lautet {}", _password),
    ("german whose", "Das Passwort für die Datenbank ist {}.", _password),
    ("german name", "Kennwort: {}", _word_password),
    ("german quoted", "das Kennwort ist `{}`", _word_password),
    ("portuguese", "a senha é {}", _password),
    ("portuguese env", "DB_SENHA={} npm start", _word_password),
    ("dutch", "het wachtwoord is {}", _password),
    ("russian", "пароль: {}", _password),
    ("russian whose", "Пароль от базы это {}, не забудь", _password),
    ("russian dash", "Пароль — {}", _password),
    ("russian json", '{{"пароль": "{}"}}', _word_password),
    ("chinese", "数据库的密码是{}，请登录", _password),
    ("chinese name", "密码：{}", _word_password),
    ("chinese command", "口令为 {} 。", _password),
    ("chinese set", "把密码改成{}吧", _password),
    ("japanese", "パスワードは {} です", _password),
    ("japanese joined", "データベースのパスワードは「{}」です。", _password),
    ("japanese number", "暗証番号：{}です", _password),
    ("korean", "비밀번호는 {}입니다", _password),
)  # fmt: skip


def canaries(random: Random) -> Iterator[Canary]:
    for kind, form, make in FORMS:
        secret = make(random)
        yield Canary(kind, form.format(secret), secret)


def leaked(secret: str, text: str, size: int = 8) -> list[str]:
    """The parts of a secret that are readable in a text."""
    size = min(size, len(secret))
    parts = {secret[place : place + size] for place in range(len(secret) - size + 1)}
    return sorted(part for part in parts if part in text)
