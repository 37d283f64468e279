"""Replicas that share a database export each signal once, with the name of its organisation."""

import asyncio
import time

from brimline.server.export.output import TelemetryOutput
from brimline.settings import TelemetrySettings
from brimline.store.base import PutSession, PutThread, RecordSignal
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.rows import SessionRow, SignalRow, ThreadRow

from ..otlp_collector import RecordingCollector, recording_collector
from ..test_telemetry_export import plain, records

ORGANISATION = "exporting"


async def record_signal(database: PostgresDatabase, session: str) -> None:
    now = time.time()
    store = database.store(ORGANISATION)
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
