"""Unpacked sessions equal the packed ones."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.transcripts.source import Cursor, Tally
from brimline.context.events import (
    MAIN,
    Added,
    AnyEvent,
    Call,
    Compacted,
    SessionSeen,
    Spent,
    WindowReported,
)
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.sessions.state_file import ROW, SavedSession, decode_session, encode_session

counts = st.integers(0, 1 << 40)
times = st.none() | st.floats(0, 2e9)
names = st.none() | st.text(max_size=8)
threads = st.sampled_from([MAIN, "a1"])
parts = st.integers(0, 500)
usages = st.builds(Usage, counts, counts, st.just(500), st.just(500), st.none() | parts, parts)
calls = st.builds(
    Call,
    at=times,
    id=st.text(max_size=3),
    usage=usages,
    model=names,
    asked_for=names,
    thread=threads,
    final=st.booleans(),
    provider=names,
    service_tier=names,
    cost=st.none() | st.floats(0, 9),
    branch=names,
)
others: st.SearchStrategy[AnyEvent] = (
    st.builds(SessionSeen, session=names, project=names, records_compactions=st.booleans())
    | st.builds(Compacted, at=times, thread=threads, before=counts)
    | st.builds(Spent, usage=usages, thread=threads, model=names, id=names)
    | st.builds(WindowReported, tokens=counts, model=names, thread=threads, max_output=counts)
    | st.builds(Added, pending=counts, earlier_reasoning=counts, thread=threads)
)


@given(st.lists(calls | others), st.builds(Cursor, counts, st.binary(max_size=9)))
def test_unpacked_session_equals_the_packed_one(events: list[AnyEvent], cursor: Cursor) -> None:
    saved = SavedSession(cursor, fold(Session(agent="claude"), events), Tally(records=3))
    back = decode_session(encode_session(saved))
    assert back == saved
    for name, thread in saved.session.threads.items():
        assert list(back.session.threads[name].calls) == list(thread.calls)


def test_codec_knows_every_field_of_call_and_usage() -> None:
    # No file has these: only telemetry sets the first, and only the store the others.
    not_of_files = {"is_compacted", "stored_cost", "stored_miss_cost"}
    fields = {*Call.__struct_fields__, *Usage.__struct_fields__} - {"usage"}
    assert set(ROW) == fields - not_of_files
