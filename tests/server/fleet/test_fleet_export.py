"""Replicas that share a database export each signal once, with the name of its organisation."""

import asyncio
import time

from brimline.daemon.telemetry_export.exporter import TelemetryOutput
from brimline.settings import Settings, TelemetrySettings
from brimline.store.base import PutSession, PutThread, RecordSignal
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.rows import SessionRow, SignalRow, ThreadRow

from ..otlp_collector import RecordingCollector, recording_collector
from ..test_telemetry_export import plain, records
from .conftest import Fleet

ORGANISATION = "exporting"


async def record_signal(
    database: PostgresDatabase, session: str, organisation: str = ORGANISATION
) -> None:
    now = time.time()
    store = database.store(organisation)
    await store.write(
        [
            PutSession(SessionRow(session, "codex", now)),
            PutThread(ThreadRow(session, "main", 0, 1, "telemetry", "measured", sent=7)),
            RecordSignal(SignalRow(session, "main", 0, "level", now, 50.0)),
        ]
    )


def exported_sessions(collector: RecordingCollector) -> list[str]:
    return [plain(each["attributes"])["gen_ai.conversation.id"] for each in records(collector)]


def test_one_replica_exports_and_another_takes_over(database_url: str) -> None:
    async def run() -> None:
        settings = TelemetrySettings(export=collector.address)
        replicas = [await open_database(database_url) for _ in range(2)]
        await record_signal(replicas[1], "first")
        outputs = [
            TelemetryOutput(settings, each.store(ORGANISATION), ORGANISATION) for each in replicas
        ]
        for output in outputs:
            output.start()
        await asyncio.to_thread(collector.until, lambda: "/v1/metrics" in collector.paths())
        await outputs[0].close()
        await replicas[0].close()
        await record_signal(replicas[1], "second")
        both = ["first", "second"]
        await asyncio.to_thread(collector.until, lambda: exported_sessions(collector) == both)
        await outputs[1].close()
        await replicas[1].close()

    with recording_collector() as collector:
        asyncio.run(run())
        assert exported_sessions(collector) == ["first", "second"]
        (resource,) = collector.received[0].document["resourceLogs"]
        assert plain(resource["resource"]["attributes"])["brimline.organisation"] == ORGANISATION


def test_server_exports_and_forwards_for_an_organisation(fleet: Fleet) -> None:
    """What comes in for one organisation is exported with its name, and passed on as it came."""
    organisation = "forwarding"
    with recording_collector() as collector:
        settings = TelemetrySettings(export=collector.address, forward=f"{collector.address}/on")
        app = fleet.create_app(Settings(telemetry=settings))
        fleet.run(record_signal(fleet.database, "served", organisation))
        token = fleet.token(organisation)
        headers = {"content-type": "application/json"}
        sent = fleet.ask("POST", "/v1/traces", token, {}, app=app, headers=headers)
        assert sent.status == 200
        done = {"/on/v1/traces", "/v1/logs", "/v1/metrics"}
        fleet.run(asyncio.to_thread(collector.until, lambda: done <= set(collector.paths())))
        metrics = fleet.ask("GET", "/metrics", token, app=app).body.decode()
        fleet.run(app.organisations.close())
    assert exported_sessions(collector) == ["served"]
    assert 'brimline_telemetry_exported_total{kind="signal"} 1' in metrics
    assert "brimline_telemetry_forwarded_total 1" in metrics
    assert 'brimline_ingest_requests_total{path="/v1/traces",status="2xx"} 1' in metrics
