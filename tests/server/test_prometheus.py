"""The alert rules and the Grafana dashboard on a real Prometheus that scrapes a real daemon."""

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from reserved_port import ReservedPort
from system_programs import require_unpacked

from .filled_session import write_filled_session
from .running import Running
from .test_daemon import SESSION, status_input

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "brimline.json"
MAX_WAIT_S = 60.0
SCRAPES = 3  # that a rate needs, and one more
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: brimline
    authorization: {{credentials_file: "{secret}"}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
VARIABLES = {"$job": ".*", "$agent": ".*", "$__rate_interval": "1m"}


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of prometheus and promtool."""
    return require_unpacked("prometheus", "prometheus")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon with what every metric counts, and an uplink to a server that is down."""
    running, nothing = Running(tmp_path_factory.mktemp("daemon")), ReservedPort()
    config = running.home / ".config" / "brimline" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[uplink]\nurl = "http://127.0.0.1:{nothing.number}"\ntoken = "t"\n')
    write_filled_session(running.home, "filled", calls=12, packed_after=3)
    running.start()
    running.hook(status_input(120_000), "statusline")
    running.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    running.post("/v1/logs", {})
    running.until("/v1/sessions", lambda sessions: "filled" in str(sessions))
    yield running
    running.close()


class Prometheus:
    def __init__(self, programs: Path, folder: Path, daemon: Running) -> None:
        self._port = ReservedPort()
        config = folder / "prometheus.yml"
        secret = daemon.state / "secret"
        config.write_text(CONFIG.format(rules=RULES, secret=secret, port=daemon.port))
        words = [
            str(programs / "prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port.number}",
        ]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._get("query?" + urlencode({"query": expression}))["result"]

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def wait_for_scrapes(self) -> None:
        end = time.monotonic() + MAX_WAIT_S
        while not self._has_scraped():
            assert time.monotonic() < end
            time.sleep(0.1)

    def _has_scraped(self) -> bool:
        try:
            found = self.query("count_over_time(brimline_calls_total[1m])")
        except OSError:  # it has not started yet
            return False
        return any(float(each["value"][1]) >= SCRAPES for each in found)

    def _get(self, path: str) -> Any:
        address = f"http://127.0.0.1:{self._port.number}/api/v1/{path}"
        with urllib.request.urlopen(address, timeout=MAX_WAIT_S) as answer:
            reply = json.load(answer)
        assert reply["status"] == "success", reply
        return reply["data"]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(MAX_WAIT_S)


@pytest.fixture(scope="module")
def prometheus(
    programs: Path, daemon: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    running = Prometheus(programs, tmp_path_factory.mktemp("prometheus"), daemon)
    try:
        running.wait_for_scrapes()
        yield running
    finally:
        running.close()


def dashboard_panels() -> list[dict[str, Any]]:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    return [panel for panel in panels if "targets" in panel]


def dashboard_queries() -> list[str]:
    """The queries of the dashboard as Grafana sends them if all jobs and agents are chosen."""
    queries = [target["expr"] for panel in dashboard_panels() for target in panel["targets"]]
    for variable, value in VARIABLES.items():
        queries = [query.replace(variable, value) for query in queries]
    return queries


def test_alert_rules_do_what_they_are_for(programs: Path, tmp_path: Path) -> None:
    """Each rule fires for the figures that it is for, once for all replicas, and not for others."""
    cases = tmp_path / "alert_rules.yml"
    text = (Path(__file__).parent / "alert_rules.yml").read_text("utf-8")
    cases.write_text(text.replace("ALERTS", str(RULES)))
    for words in (["check", "rules", str(RULES)], ["test", "rules", str(cases)]):
        done = subprocess.run([programs / "promtool", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    named = set(re.findall(r"alert: (\w+)", RULES.read_text("utf-8")))
    assert set(re.findall(r"alertname: (\w+)", text)) == named


def test_metrics_are_named_as_prometheus_expects(programs: Path, daemon: Running) -> None:
    text = daemon.get_text("/metrics")[1]
    words = [programs / "promtool", "check", "metrics"]
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_query_of_the_dashboard_has_a_result(prometheus: Prometheus) -> None:
    """A query with a metric or a label that does not exist would be empty."""
    empty = [query for query in dashboard_queries() if not prometheus.query(query)]
    assert empty == []


def test_rules_are_evaluated_without_errors(prometheus: Prometheus) -> None:
    rules = prometheus.rules()
    assert len(rules) == RULES.read_text("utf-8").count("alert:")
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    for rule in rules:
        prometheus.query(rule["query"])


def test_dashboard_shows_every_metric_and_has_a_place_for_each_panel(daemon: Running) -> None:
    """Panels have ids of their own and do not overlap; their data source is a variable."""
    document = json.loads(DASHBOARD.read_text("utf-8"))
    panels = document["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    variables = {each["name"] for each in document["templating"]["list"]}
    assert variables == {"datasource", "job", "agent"}
    sources = [each["datasource"] for panel in dashboard_panels() for each in panel["targets"]]
    assert {source["uid"] for source in sources} == {"${datasource}"}
    served = set(re.findall(r"^# TYPE (\w+)", daemon.get_text("/metrics")[1], re.MULTILINE))
    named = set(re.findall(r"brimline_\w+", " ".join(dashboard_queries())))
    shown = {name.removesuffix("_bucket") for name in named}
    # These are the parts of a ratio that is shown.
    parts = {f"brimline_context_{part}tokens" for part in ("", "window_", "limit_")}
    # A fleet's server has none of these: each machine has its own.
    own = {name for name in served if name.startswith(("brimline_uplink_", "brimline_hooks_"))}
    assert shown == served - parts - own
