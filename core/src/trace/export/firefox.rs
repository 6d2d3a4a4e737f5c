//! The Firefox Profiler's processed profile, version 48; newer profilers upgrade it when they load it.
//!
//! Each state of a thread is an interval marker. Samples say what a thread did, in its stack or by the name of its
//! state, and how long others waited for it meanwhile: the call tree and the flame graph are of that time.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::firefox_samples::{Sample, Tables, milliseconds, samples};
use super::holders::Holders;
use super::numbered::Numbered;
use super::process::{pid, process_name};
use crate::trace::analyze::blamed_code::blamed_pieces;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Life, State, Timeline};

const FORMAT: u32 = 48;
const GECKO_FORMAT: u32 = 28;
const INTERVAL: u32 = 1;

/// The profiler's name of a colour for a state.
fn color(state: State) -> &'static str {
    match state {
        State::Running => "green",
        State::Waiting => "red",
        State::Idle | State::Sleep => "transparent",
        State::OffLock => "blue",
        State::Gc => "purple",
    }
}

/// Writes the profile.
pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"meta\":{},\"libs\":[],\"threads\":[", meta(recording, timeline))?;
    let pieces = blamed_pieces(recording, timeline);
    let mut holders = Holders::new(recording, timeline, &pieces);
    let samples = samples(timeline, &pieces);
    for (index, (life, samples)) in timeline.threads.iter().zip(&samples).enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        let thread = Thread::of(recording, index == 0, life, samples, &mut holders);
        serde_json::to_writer(&mut *out, &thread)?;
    }
    out.write_all(b"]}\n")
}

/// The places where the profiler shows a marker.
const DISPLAY: [&str; 3] = ["marker-chart", "marker-table", "timeline-overview"];

fn meta(recording: &Recording, timeline: &Timeline) -> Value {
    let started = recording.about("started").and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
    let category =
        |name: &str, color: &str| json!({"name": name, "color": color, "subcategories": ["Other"]});
    let mut categories: Vec<Value> = State::ALL.map(|state| category(state.name(), color(state))).into();
    // The profiler wants a grey one for stacks without a category.
    categories.push(category("other", "grey"));
    let schema = |state: State| {
        let data = json!([
            {"key": "what", "label": "Lock or operation", "format": "string"},
            {"key": "heldBy", "label": "Held meanwhile by", "format": "string"},
            {"key": "during", "label": "In the mark", "format": "string"},
            {"key": "code", "label": "In the function", "format": "string"},
        ]);
        json!({"name": state.name(), "display": DISPLAY, "data": data})
    };
    let mut schemas: Vec<Value> = State::ALL.map(schema).into();
    schemas.push(
        json!({"name": "mark", "display": ["marker-chart", "marker-table", "timeline-overview"], "data": []}),
    );
    json!({
        "product": process_name(recording),
        "interval": INTERVAL,
        "startTime": milliseconds(started),
        "profilingEndTime": milliseconds(timeline.length),
        "processType": 0,
        "stackwalk": 0,
        "version": GECKO_FORMAT,
        "preprocessedProfileVersion": FORMAT,
        "symbolicated": true,
        "categories": categories,
        "markerSchema": schemas,
        "sourceCodeIsNotOnSearchfox": true,
        "usesOnlyOneStackType": true,
        "initialVisibleThreads": (0..timeline.threads.len()).collect::<Vec<_>>(),
        "initialSelectedThreads": if timeline.threads.is_empty() { vec![] } else { vec![0] },
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thread {
    name: String,
    is_main_thread: bool,
    process_type: &'static str,
    process_name: String,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: f64,
    paused_ranges: [(); 0],
    pid: String,
    tid: u32,
    samples: Value,
    markers: Markers,
    stack_table: Value,
    frame_table: Value,
    func_table: Value,
    resource_table: Value,
    native_symbols: Value,
    string_array: Vec<String>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Markers {
    data: Vec<Payload>,
    name: Vec<usize>,
    start_time: Vec<f64>,
    end_time: Vec<f64>,
    phase: Vec<u8>,
    category: Vec<usize>,
    length: usize,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Payload {
    #[serde(rename = "type")]
    schema: &'static str,
    what: String,
    /// The thread that held the lock, its mark and its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    during: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// The phase of a marker with a beginning and an end.
const INTERVAL_PHASE: u8 = 1;

impl Thread {
    fn of(
        recording: &Recording,
        is_main_thread: bool,
        life: &Life,
        samples: &[Sample],
        holders: &mut Holders<'_>,
    ) -> Self {
        let mut tables = Tables::new(&recording.code);
        let samples = tables.samples(samples);
        let markers = Markers::of(recording, life, holders, &mut tables.strings);
        Self {
            name: life.name.clone(),
            is_main_thread,
            process_type: "default",
            process_name: process_name(recording),
            process_startup_time: 0.0,
            process_shutdown_time: None,
            register_time: milliseconds(life.start),
            unregister_time: milliseconds(life.end),
            paused_ranges: [],
            pid: pid(recording).to_string(),
            tid: life.id,
            samples,
            markers,
            stack_table: tables.stack_table(),
            frame_table: tables.frame_table(),
            func_table: tables.func_table(),
            resource_table: json!({"lib": [], "name": [], "host": [], "type": [], "length": 0}),
            native_symbols: json!({"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0}),
            string_array: tables.strings.rows().to_vec(),
        }
    }
}

impl Markers {
    fn of(
        recording: &Recording,
        life: &Life,
        holders: &mut Holders<'_>,
        strings: &mut Numbered<String>,
    ) -> Self {
        let mut markers = Self::default();
        for (slice, end) in life.states() {
            let what = match slice.state {
                State::OffLock => recording.name(slice.what),
                state if state.holds() || state == State::Waiting => recording.lock_name(slice.what),
                _ => String::new(),
            };
            let mut payload = Payload { schema: slice.state.name(), what, ..Payload::default() };
            if let Some(holder) = holders.of(slice, end).map(|holder| holders.named(holder)) {
                payload.held_by = Some(holder.thread.to_owned());
                (payload.during, payload.code) = (holder.mark, holder.code);
            }
            let name = strings.number(slice.state.name().to_owned());
            markers.push(name, slice.state as usize, slice.start, end, payload);
        }
        for mark in &life.marks {
            let what = recording.name(mark.name);
            let name = strings.number(what.clone());
            let payload = Payload { schema: "mark", what, ..Payload::default() };
            markers.push(name, State::Running as usize, mark.start, mark.end, payload);
        }
        markers
    }

    fn push(&mut self, name: usize, category: usize, start: u64, end: u64, payload: Payload) {
        self.data.push(payload);
        self.name.push(name);
        self.start_time.push(milliseconds(start));
        self.end_time.push(milliseconds(end));
        self.phase.push(INTERVAL_PHASE);
        self.category.push(category);
        self.length += 1;
    }
}
