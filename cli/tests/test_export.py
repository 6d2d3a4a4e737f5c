"""Reads the files of `offlock export` as the tools for these formats read them.

The environment variables `OFFLOCK` and `SIMULATE` are the paths of the command and of the core's example `simulate`,
`SPEEDSCOPE_SCHEMA` that of the JSON schema which speedscope publishes; without it, files are not checked against that.
"""

import json
import os
import subprocess
import zlib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

WITH_STACKS = {"hostile", "stacks"}
STATES = {"running", "waiting", "idle", "sleep", "off-lock", "gc"}
GVL_TRACING = {
    "running": "running",
    "waiting": "wants_gvl",
    "idle": "waiting",
    "sleep": "sleeping",
    "off-lock": "off_lock",
    "gc": "gc",
}


@pytest.fixture(scope="module", params=["convoy", "web", "hostile", "stacks"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / f"{request.param}.offlock"
    subprocess.run([os.environ["SIMULATE"], request.param, path], check=True)
    return path


def export(trace: Path, format: str) -> bytes:
    command = [os.environ["OFFLOCK"], "export", "-f", format, trace, "-o", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def summary(trace: Path) -> Any:
    return json.loads(export(trace, "json"))


def state_times(summary: Any) -> list[dict[str, int]]:
    return [
        {name.replace("_", "-"): time for name, time in thread["times"].items() if time}
        for thread in summary["threads"]
    ]


def lost_by_line(summary: Any) -> dict[tuple[str, str, int], int]:
    """What was lost to each line that held the lock: function, file, line."""
    lines = summary["code"]["lines"]
    return {(line["function"], line["file"], line["line"]): line["lost"] for line in lines}


def decompressed(data: bytes) -> bytes:
    """A trace without compression, as Perfetto's reader sees it."""
    packets = Trace.FromString(data).packet
    assert all(packet.ByteSize() > len(packet.compressed_packets) > 0 for packet in packets)
    return b"".join(zlib.decompress(packet.compressed_packets) for packet in packets)


class TestPerfetto:
    @pytest.fixture
    def packets(self, trace: Path) -> Any:
        return Trace.FromString(decompressed(export(trace, "perfetto"))).packet

    def test_the_schema_knows_every_field(self, packets: Any, trace: Path) -> None:
        again = Trace(packet=packets)
        again.DiscardUnknownFields()
        data = export(trace, "perfetto")
        assert again.ByteSize() == len(decompressed(data)) > 2 * len(data)

    def test_every_contended_wait_says_who_held_the_lock(self, packets: Any, trace: Path) -> None:
        interned = [packet.interned_data for packet in packets if packet.HasField("interned_data")]
        names = {name.iid: name.name for data in interned for name in data.event_names}
        keys = {name.iid: name.name for data in interned for name in data.debug_annotation_names}
        texts = {
            text.iid: text.str.decode() for data in interned for text in data.debug_annotation_string_values
        }
        tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in packets}
        said: Any = defaultdict(lambda: defaultdict(set))
        for event in (packet.track_event for packet in packets):
            for annotation in event.debug_annotations:
                assert names[event.name_iid] == "waiting"
                key = keys[annotation.name_iid]
                said[key][tracks[event.track_uuid]].add(texts[annotation.string_value_iid])
        expected = summary(trace)
        holders = said["held meanwhile by"]
        assert holders.keys() == {t["name"] for t in expected["threads"] if t["contended"]["count"]}
        places = {place for places in said["in the function"].values() for place in places}
        lines = {f"{function} ({file}:{line})" for function, file, line in lost_by_line(expected)}
        assert places <= lines
        assert bool(places) == bool(lines) == (trace.stem in WITH_STACKS)
        if trace.stem == "convoy":
            assert holders == {"net": {"counter"}, "counter": {"net"}}

    def test_every_event_has_a_known_track_and_name(self, packets: Any) -> None:
        tracks = {p.track_descriptor.uuid for p in packets if p.HasField("track_descriptor")}
        names = {name.iid for p in packets for name in p.interned_data.event_names}
        assert 0 not in tracks
        assert 0 not in names
        for packet in packets:
            assert packet.trusted_packet_sequence_id == 1
            if packet.HasField("track_event"):
                event = packet.track_event
                assert event.track_uuid in tracks
                assert event.type != TrackEvent.TYPE_SLICE_BEGIN or event.name_iid in names

    def test_slices_nest_and_states_last_as_long_as_in_the_summary(self, packets: Any, trace: Path) -> None:
        names = {name.iid: name.name for p in packets for name in p.interned_data.event_names}
        open_slices = defaultdict(list)
        times: Any = defaultdict(lambda: defaultdict(int))
        last: dict[int, int] = defaultdict(int)
        for packet in packets:
            event = packet.track_event
            assert packet.timestamp >= last[event.track_uuid] or not packet.HasField("track_event")
            last[event.track_uuid] = packet.timestamp
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                open_slices[event.track_uuid].append((names[event.name_iid], packet.timestamp))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                name, start = open_slices[event.track_uuid].pop()
                times[event.track_uuid][name] += packet.timestamp - start
        assert not any(open_slices.values())
        expected = summary(trace)
        by_name = {p.track_descriptor.uuid: p.track_descriptor.name for p in packets}
        threads = [
            (by_name[uuid], dict(states)) for uuid, states in times.items() if STATES.issuperset(states)
        ]
        assert threads == [
            (thread["name"], states)
            for thread, states in zip(expected["threads"], state_times(expected), strict=True)
        ]

    def test_stacks_weigh_what_others_lost(self, packets: Any, trace: Path) -> None:
        data = [packet.interned_data for packet in packets if packet.HasField("interned_data")]
        functions = {text.iid: text.str.decode() for each in data for text in each.function_names}
        paths = {text.iid: text.str.decode() for each in data for text in each.source_paths}
        frames = {frame.iid: frame for each in data for frame in each.frames}
        stacks = {stack.iid: list(stack.frame_ids) for each in data for stack in each.callstacks}
        assert all(frame in frames for stack in stacks.values() for frame in stack)
        tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets}
        lost: Any = defaultdict(float)
        for event in (packet.track_event for packet in packets):
            if event.HasField("callstack_iid"):
                assert tracks[tracks[event.track_uuid].parent_uuid].name
                frame = frames[stacks[event.callstack_iid][-1]]
                line = (
                    functions[frame.function_name_id],
                    paths.get(frame.source_path_iid, ""),
                    frame.line_number,
                )
                lost[line] += event.callstack_weight
        assert {line: time for line, time in lost.items() if time} == lost_by_line(summary(trace))

    def test_the_counter_integrates_to_the_time_waited(self, packets: Any, trace: Path) -> None:
        counters = {p.track_descriptor.uuid for p in packets if p.track_descriptor.HasField("counter")}
        events = [p for p in packets if p.track_event.track_uuid in counters]
        assert all(p.track_event.type == TrackEvent.TYPE_COUNTER for p in events)
        area = sum(a.track_event.counter_value * (b.timestamp - a.timestamp) for a, b in pairwise(events))
        assert area == summary(trace)["times"]["waiting"]
        assert events[-1].track_event.counter_value == 0

    def test_flows_lead_from_a_holder_to_a_later_one(self, packets: Any) -> None:
        begins, ends = {}, {}
        for packet in packets:
            for flow in packet.track_event.flow_ids:
                assert flow not in begins
                begins[flow] = packet
            for flow in packet.track_event.terminating_flow_ids:
                assert flow not in ends
                ends[flow] = packet
        assert begins
        assert begins.keys() == ends.keys()
        for flow, begin in begins.items():
            assert begin.timestamp < ends[flow].timestamp
            assert begin.track_event.track_uuid != ends[flow].track_event.track_uuid


def test_gvl_tracing_is_valid_json_with_its_event_names(trace: Path) -> None:
    events = json.loads(export(trace, "gvl-tracing"))
    expected = summary(trace)
    assert events[0]["name"] == "process_name"
    named = [event for event in events if event.get("name") == "thread_name"]
    names = {event["tid"]: event["args"]["name"] for event in named}
    assert names == {thread["id"]: thread["name"] for thread in expected["threads"]}
    times: Any = defaultdict(lambda: defaultdict(float))
    begins = [event for event in events if event["ph"] == "B"]
    ends = [event for event in events if event["ph"] == "E"]
    for begin, end in zip(begins, ends, strict=True):
        assert begin["tid"] == end["tid"]
        times[begin["tid"]][begin["name"]] += end["ts"] - begin["ts"]
    order = defaultdict(list)
    for begin in begins:
        order[begin["tid"]].append(begin["name"])
    for names_in_order in order.values():
        assert "started" not in names_in_order[1:]
        assert "died" not in names_in_order[:-1]
    holders = {event["args"]["held_by"] for event in begins if "args" in event}
    assert holders <= {thread["name"] for thread in expected["threads"]}
    assert all(event["name"] == "wants_gvl" for event in begins if "args" in event)
    assert bool(holders) == any(thread["contended"]["count"] for thread in expected["threads"])
    assert {names_in_order[0] for names_in_order in order.values()} >= {"started"}
    for states in times.values():
        assert states.pop("started", 0) == states.pop("died", 0) == 0
    for thread, states in zip(expected["threads"], state_times(expected), strict=True):
        ours = {GVL_TRACING[state]: pytest.approx(time / 1000, abs=1) for state, time in states.items()}
        assert dict(times[thread["id"]]) == ours


def test_firefox_tables_are_complete_and_their_indices_in_range(trace: Path) -> None:
    profile = json.loads(export(trace, "firefox"))
    meta = profile["meta"]
    assert meta["preprocessedProfileVersion"] == 48
    categories = len(meta["categories"])
    assert "grey" in {category["color"] for category in meta["categories"]}, "the profiler's default"
    schemas = {schema["name"] for schema in meta["markerSchema"]}
    expected = summary(trace)
    assert [thread["name"] for thread in profile["threads"]] == [t["name"] for t in expected["threads"]]
    assert [t["isMainThread"] for t in profile["threads"]].count(True) == 1
    for thread, states in zip(profile["threads"], state_times(expected), strict=True):
        category_names = [meta["categories"][category]["name"] for category in thread["markers"]["category"]]
        times: Any = defaultdict(float)
        spans = zip(thread["markers"]["startTime"], thread["markers"]["endTime"], strict=True)
        for name, data, (start, end) in zip(category_names, thread["markers"]["data"], spans, strict=True):
            times[name] += (end - start) * (data["type"] != "mark")
        assert times == pytest.approx({name: time / 1e6 for name, time in states.items()})
        strings = len(thread["stringArray"])
        sizes = {"string": strings, "category": categories}
        for name in ("stackTable", "frameTable", "funcTable", "markers", "samples"):
            table = thread[name]
            sizes[name] = table["length"]
            for column in table.values():
                assert not isinstance(column, list) or len(column) == table["length"]
        for table, column, target in (
            ("samples", "stack", "stackTable"),
            ("stackTable", "frame", "frameTable"),
            ("stackTable", "category", "category"),
            ("frameTable", "func", "funcTable"),
            ("frameTable", "category", "category"),
            ("funcTable", "name", "string"),
            ("funcTable", "fileName", "string"),
            ("stackTable", "prefix", "stackTable"),
            ("markers", "name", "string"),
            ("markers", "category", "category"),
        ):
            indices = [index for index in thread[table][column] if index is not None]
            assert all(0 <= index < sizes[target] for index in indices)
            assert len(indices) == len(thread[table][column]) or column in ("prefix", "fileName")
        prefixes = enumerate(thread["stackTable"]["prefix"])
        assert all(prefix is None or prefix < stack for stack, prefix in prefixes)
        assert isinstance(thread["pid"], str)
        markers = thread["markers"]
        assert {data["type"] for data in markers["data"]} <= schemas
        held_by = {data["heldBy"] for data in markers["data"] if "heldBy" in data}
        assert held_by <= {other["name"] for other in expected["threads"]} - {thread["name"]}
        assert all(a <= b for a, b in zip(markers["startTime"], markers["endTime"], strict=True))


def test_firefox_samples_weigh_what_others_lost(trace: Path) -> None:
    profile = json.loads(export(trace, "firefox"))
    expected = summary(trace)
    inflicted: Any = defaultdict(int)
    for lock in expected["locks"]:
        for thread, time in lock["holders"]:
            inflicted[thread] += time
    lost: Any = defaultdict(float)
    for index, thread in enumerate(profile["threads"]):
        samples, stacks, frames, funcs, strings = (
            thread[table] for table in ("samples", "stackTable", "frameTable", "funcTable", "stringArray")
        )
        assert sum(samples["weight"]) == pytest.approx(inflicted[index] / 1e6)
        assert samples["time"] == sorted(samples["time"])
        for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
            frame = stacks["frame"][stack]
            func = frames["func"][frame]
            if funcs["fileName"][func] is not None:
                file = strings[funcs["fileName"][func]]
                lost[strings[funcs["name"][func]], file, frames["line"][frame]] += weight
            elif weight:
                category = profile["meta"]["categories"][stacks["category"][stack]]["name"]
                assert category == strings[funcs["name"][func]], "a state without a stack"
                assert category in ("running", "gc")
    known = {line: time / 1e6 for line, time in lost_by_line(expected).items()}
    assert {line: time for line, time in lost.items() if time} == pytest.approx(known)


def test_speedscope_accepts_its_profiles(trace: Path) -> None:
    file = json.loads(export(trace, "speedscope"))
    if schema := os.environ.get("SPEEDSCOPE_SCHEMA"):
        jsonschema.validate(file, json.loads(Path(schema).read_text()))
    expected = summary(trace)
    lost, *held = file["profiles"]
    frames = file["shared"]["frames"]
    by_line: Any = defaultdict(int)
    for sample, weight in zip(lost["samples"], lost["weights"], strict=True):
        frame = frames[sample[-1]]
        by_line[frame["name"], frame.get("file", ""), frame.get("line", 0)] += weight
    assert by_line == lost_by_line(expected)
    assert lost["endValue"] == sum(lost["weights"]) == expected["code"]["known"]
    names = {f"{thread['name']}: what held the lock" for thread in expected["threads"]}
    assert {profile["name"] for profile in held} <= names
    assert bool(held) == (trace.stem in WITH_STACKS)
    for profile in held:
        open_frames: list[int] = []
        times = [event["at"] for event in profile["events"]]
        assert times == sorted(times)
        assert profile["startValue"] <= times[0]
        assert times[-1] <= profile["endValue"]
        for event in profile["events"]:
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert open_frames.pop() == event["frame"]
        assert not open_frames
