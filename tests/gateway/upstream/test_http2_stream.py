"""One stream over HTTP/2 with a peer that keeps to the rules: messages both ways, and its end."""

import asyncio

import pytest
from h2 import events
from h2.settings import SettingCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from attached_worker import settle
from http2_peer import STREAM, Http2Peer, InnerEndpoint, data, goodbye, messages_of, opened
from radixgate.gateway.upstream.grpc_endings import CLOSED_BY_WORKER
from radixgate.gateway.upstream.grpc_messages import framed
from radixgate.gateway.upstream.http2_silence import Pings
from radixgate.gateway.upstream.http2_stream import WINDOW_BYTES, Http2Stream

OK = ("grpc-status", "0")


async def test_it_asks_as_grpc_does_and_sends_at_once_what_was_waiting() -> None:
    async with opened(settled=False, say_first=[b"hello", b"", b"you"]) as one:
        (asked,) = (event for event in one.peer.heard if isinstance(event, events.RequestReceived))
        assert dict(asked.headers) == {
            b":method": b"POST",
            b":scheme": b"http",
            b":path": b"/it/Attach",
            b":authority": b"worker:1",
            b"te": b"trailers",
            b"content-type": b"application/grpc",
            b"user-agent": b"radixgate",
        }
        assert messages_of(one.peer.commands) == [b"hello", b"", b"you"]
        assert one.peer.h2.remote_settings[SettingCodes.ENABLE_PUSH] == 0


async def test_what_is_sent_in_one_turn_goes_in_one_frame() -> None:
    async with opened() as one:
        for number in range(5):
            one.stream.send(b"%d" % number)
        assert one.peer.count(events.DataReceived) == 0
        await settle()
        assert messages_of(one.peer.commands) == [b"0", b"1", b"2", b"3", b"4"]
        assert one.peer.count(events.DataReceived) == 1


async def test_behind_its_last_message_the_worker_hears_that_there_is_no_more() -> None:
    async with opened() as one:
        one.stream.send_last(b"x" * 100_000)
        await settle()
        assert one.peer.count(events.StreamEnded) == 0  # its window holds 65,535 bytes
        one.peer.h2.acknowledge_received_data(65_535, STREAM)
        one.peer.say()
        assert messages_of(one.peer.commands) == [b"x" * 100_000]
        assert one.peer.count(events.StreamEnded) == 1
        one.peer.deliver(data(framed(b"what it tells then")))
        assert one.messages == [b"what it tells then"]
        assert one.alive


async def test_who_has_heard_enough_closes_it() -> None:
    async with opened() as one:
        one.stream.close("enough")
        one.peer.heard.clear()
        one.peer.deliver(data(framed(b"what was on its way")))
        assert await one.why() == "enough"
        assert one.messages == []
        assert one.peer.closed
        assert not one.peer.aborted


async def test_settings_and_pings_are_answered() -> None:
    async with opened() as one:
        assert one.peer.count(events.SettingsAcknowledged) == 1
        one.peer.h2.ping(b"12345678")
        one.peer.say()
        (answer,) = (event for event in one.peer.heard if isinstance(event, events.PingAckReceived))
        assert answer.ping_data == b"12345678"


async def test_pings_are_answered_at_once_and_behind_what_came_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened() as one:
        handed_on: list[int] = []
        write = one.peer.write

        def noting(raw: bytes) -> None:
            handed_on.append(len(one.messages))
            write(raw)

        monkeypatch.setattr(one.peer, "write", noting)
        one.peer.h2.ping(b"1" * 8)
        one.peer.h2.ping(b"2" * 8)
        one.peer.deliver(one.peer.h2.data_to_send() + data(framed(b"word")))
        assert handed_on == [1]
        answers = [it.ping_data for it in one.peer.heard if isinstance(it, events.PingAckReceived)]
        assert answers == [b"1" * 8, b"2" * 8]


@settings(max_examples=50)
@given(
    st.lists(st.binary(max_size=60), max_size=6),
    st.lists(st.tuples(st.integers(1, 70), st.integers(0, 255)), max_size=30),
    st.lists(st.integers(1, 40), max_size=60),
)
def test_messages_come_whole_however_frames_and_reads_are_cut(
    messages: list[bytes], frames: list[tuple[int, int]], reads: list[int]
) -> None:
    """`frames`: bytes of each, and of its padding; `reads`: bytes of each."""

    async def run() -> None:
        async with opened() as one:
            raw, wire = b"".join(map(framed, messages)), b""
            for size, padding in [*frames, (len(raw), 0)]:
                wire += data(raw[:size], padding=padding)
                raw = raw[size:]
            for size in [*reads, len(wire)]:
                one.peer.deliver(wire[:size])
                wire = wire[size:]
            assert one.messages == messages
            assert one.alive

    asyncio.run(run())


async def test_all_of_a_conversation_may_come_byte_by_byte() -> None:
    async with opened(settled=False) as one:
        peer = one.peer
        peer.h2.initiate_connection()
        peer.h2.send_headers(STREAM, ((":status", "200"), ("content-type", "application/grpc")))
        wire = peer.h2.data_to_send() + data(framed(b"a") + framed(b"bc")[:4])
        peer.h2.send_headers(STREAM, (OK,), end_stream=True)
        wire += data(framed(b"bc")[4:], padding=3) + peer.h2.data_to_send()
        for at in range(len(wire)):
            assert one.alive
            peer.deliver(wire[at : at + 1])
        assert one.messages == [b"a", b"bc"]
        assert await one.why() == CLOSED_BY_WORKER


async def test_the_worker_gets_its_window_back_as_messages_come() -> None:
    async with opened() as one:
        peer, frame = one.peer, data(framed(bytes(16_000 - 5)))
        for _ in range(10 * WINDOW_BYTES // 16_000):
            peer.deliver(frame)
        assert one.alive
        grown = [event for event in peer.heard if isinstance(event, events.WindowUpdated)]
        # The first raises the connection's window to what settings make of the stream's.
        assert grown[0].stream_id == 0
        by_stream = {
            number: sum(event.delta for event in grown[1:] if event.stream_id == number)
            for number in (0, STREAM)
        }
        assert by_stream[0] == by_stream[STREAM]
        assert 9 * WINDOW_BYTES < by_stream[0] <= 10 * WINDOW_BYTES


def windows(peer: Http2Peer, stream: int, connection: int) -> None:
    if stream:
        peer.h2.increment_flow_control_window(stream, STREAM)
    if connection:
        peer.h2.increment_flow_control_window(connection)
    peer.say()


async def test_no_more_is_sent_than_both_windows_take() -> None:
    message = bytes(200_000)
    async with opened() as one:
        one.stream.send(message)
        await settle()
        assert len(one.peer.commands) == 65_535
        windows(one.peer, 50_000, 0)
        assert len(one.peer.commands) == 65_535
        windows(one.peer, 0, 20_000)
        assert len(one.peer.commands) == 85_535
        assert one.stream.unsent_bytes == 5 + 200_000 - 85_535
        windows(one.peer, 100_000, 200_000)
        assert messages_of(one.peer.commands) == [message]
        assert one.stream.unsent_bytes == 0


async def test_a_smaller_window_in_the_settings_holds_for_what_is_on_its_way() -> None:
    async with opened(say_first=[bytes(40_000)]) as one:
        one.peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1_000})
        one.peer.say()
        one.stream.send(b"more")
        await settle()
        assert len(one.peer.commands) == 40_005
        assert one.stream.unsent_bytes == 9
        windows(one.peer, 39_005 + 9, 0)
        assert messages_of(one.peer.commands) == [bytes(40_000), b"more"]


async def test_a_full_socket_gets_nothing_more_until_it_is_empty() -> None:
    async with opened() as one:
        one.stream.pause_writing()
        one.stream.send(b"wait")
        await settle()
        assert one.peer.commands == b""
        one.stream.resume_writing()
        assert messages_of(one.peer.commands) == [b"wait"]


async def test_a_goodbye_for_new_streams_leaves_this_one_alone() -> None:
    async with opened() as one:
        one.peer.deliver(goodbye(2**31 - 1, 0, b"graceful_stop") + goodbye(STREAM, 0))
        one.stream.send(b"credit")
        await settle()
        one.peer.deliver(data(framed(b"the last")))
        assert messages_of(one.peer.commands) == [b"credit"]
        assert one.messages == [b"the last"]
        one.peer.h2.ping(b"12345678")
        one.peer.say()
        assert one.peer.count(events.PingAckReceived) == 1
        one.peer.end(("grpc-status", "14"), ("grpc-message", "draining"))
        assert await one.why() == "draining"


async def test_trailers_end_it_and_say_why() -> None:
    async with opened() as one:
        one.peer.end(OK)
        assert await one.why() == CLOSED_BY_WORKER
        assert one.peer.count(events.ConnectionTerminated) == 1
        assert (one.peer.closed, one.peer.aborted) == (True, False)
    async with opened(answered=False) as one:
        one.peer.answer(("grpc-status", "12"), end=True)
        assert await one.why() == "UNIMPLEMENTED"


async def test_cancelled_before_it_is_connected_it_closes_what_comes_of_it() -> None:
    peer = Http2Peer()
    called, connected = asyncio.Event(), asyncio.Event()

    class Slow(InnerEndpoint):
        async def connect(self, protocol: asyncio.Protocol) -> None:
            called.set()
            await connected.wait()

    stream = Http2Stream(Slow("w", 1, "w:1", None, peer), "/it/Attach", print, Pings())
    running = asyncio.create_task(stream.run())
    await called.wait()
    running.cancel()
    await settle()
    stream.connection_made(peer)
    assert running.cancelled()
    assert peer.aborted


async def test_cancelled_it_says_goodbye_and_closes() -> None:
    async with opened() as one:
        one.ending.cancel()
        await settle()
        assert one.ending.cancelled()
        assert one.peer.count(events.ConnectionTerminated) == 1
        assert one.peer.closed
