//! Random programs, whose last seconds are compared with the whole trace.

use std::io::Write;
use std::time::Duration;

use super::Ring;
use crate::Task;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Life, State, Timeline};
use crate::trace::format::code::{self, CodeDefinition};
use crate::trace::format::definition::{Definition, Stand};
use crate::trace::format::event::{Event, Kind, Reason, pack_release};
use crate::trace::format::wire::{self, Section};

const THREADS: u32 = 5;
const LOCK: u32 = 1;
const PASS: u64 = 1_000_000;

/// A program whose threads do what they may do, at random: as frames of a trace.
struct Program {
    random: u64,
    time: u64,
    holder: Option<u32>,
    wants: Vec<u32>,
    marks: [u32; THREADS as usize + 1],
    code: u32,
}

impl Program {
    fn new(seed: u64) -> Self {
        let marks = [0; THREADS as usize + 1];
        Self { random: seed, time: 1_000, holder: None, wants: Vec::new(), marks, code: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn begin(&self) -> Vec<Vec<u8>> {
        let about = [("start", self.time), ("started", 5_000_000)];
        let about = about.map(|(key, value)| (key.to_owned(), value.to_string()));
        let thread = |id| Definition::Thread { id, name: format!("thread {id}"), stand: Stand::Off };
        let all = (1..=THREADS).map(thread).chain([
            Definition::Lock { id: LOCK, name: "lock".into() },
            Definition::Name { id: 1, text: "request".into() },
        ]);
        let definitions = wire::definitions(&all.collect::<Vec<_>>());
        vec![
            wire::MAGIC.to_vec(),
            wire::frame(wire::ABOUT, &wire::about(&about)),
            wire::frame(wire::DEFINITIONS, &definitions),
        ]
    }

    fn step(&mut self) -> Event {
        self.time += 1 + self.below(20_000);
        let thread = 1 + self.below(u64::from(THREADS)) as u32;
        let (dice, holder) = (self.below(6), self.holder);
        let (kind, argument) = match holder {
            None if self.wants.contains(&thread) => {
                self.wants.retain(|other| *other != thread);
                self.holder = Some(thread);
                (Kind::Acquired, LOCK)
            }
            Some(holder) if holder == thread && dice < 3 => {
                self.holder = None;
                (Kind::Released, pack_release(LOCK, Reason::Blocks))
            }
            holder if holder != Some(thread) && !self.wants.contains(&thread) && dice > 1 => {
                self.wants.push(thread);
                (Kind::Wants, LOCK)
            }
            _ if self.marks[thread as usize] > 0 && dice % 2 == 0 => {
                self.marks[thread as usize] -= 1;
                (Kind::MarkEnd, 0)
            }
            _ => {
                self.marks[thread as usize] += 1;
                (Kind::MarkBegin, 1)
            }
        };
        Event { time: self.time, thread, kind, argument }
    }

    /// The frames of one pass of the drain: new code now and then, and the events.
    fn pass(&mut self) -> Vec<Vec<u8>> {
        let (base, mut events) = (self.time + PASS, Vec::new());
        while self.time < base {
            events.push(self.step());
        }
        self.code += 3;
        let (file, function, frame) = (self.code, self.code + 1, self.code + 2);
        events.push(Event { time: self.time, thread: 1, kind: Kind::StackHolding, argument: frame });
        let code = [
            CodeDefinition::File { id: file, path: format!("file {file}") },
            CodeDefinition::Function { id: function, file, line: 1, name: format!("function {function}") },
            CodeDefinition::Frame { id: frame, caller: 0, function, line: 2 },
        ];
        let (mut body, mut section) = (Vec::new(), Section::new());
        wire::put_number(&mut body, self.time);
        for thread in 1..=THREADS {
            section.begin(self.time);
            events.iter().filter(|event| event.thread == thread).for_each(|event| section.put(*event));
            section.finish(100 + thread, &mut body);
        }
        vec![
            wire::frame(wire::CODE, &code::definitions(&code)),
            wire::frame(wire::EVENTS, &body),
            wire::frame(wire::FLUSH, &wire::flush(self.time, None)),
        ]
    }
}

fn run(seed: u64, passes: u32, keep: Duration, memory: usize) -> (Recording, Recording, Ring) {
    let (mut program, mut all) = (Program::new(seed), Vec::new());
    let mut ring = Ring::new(keep, memory);
    let mut put = |frames: Vec<Vec<u8>>| {
        for frame in frames {
            ring.write_all(&frame).expect("memory");
            all.extend(frame);
        }
    };
    put(program.begin());
    (0..passes).for_each(|_| put(program.pass()));
    let mut end = Vec::new();
    [program.time, 0, 0].into_iter().for_each(|number| wire::put_number(&mut end, number));
    all.extend(wire::frame(wire::END, &end));
    let (mut kept, dump) = (Vec::new(), ring.dump(program.time));
    dump.write(&mut kept).expect("memory");
    assert_eq!(kept.len() as u64, dump.stats().bytes);
    let read = |bytes: &[u8]| Recording::read(bytes, &Task::new()).expect("a trace");
    let (all, kept) = (read(&all), read(&kept));
    assert_eq!((all.damage, kept.damage), (None, None));
    let open: usize = ring.kept().standing.values().map(|standing| standing.open.len()).sum();
    assert_eq!(kept.events, dump.events + open as u64);
    (all, kept, ring)
}

fn state(life: &Life, time: u64) -> (State, u32) {
    let slice = life.slices.iter().rfind(|slice| slice.start <= time).expect("the first is at 0");
    (slice.state, slice.what)
}

#[test]
fn what_fits_is_the_whole_trace() {
    let (all, kept, _) = run(1, 50, Duration::from_secs(3_600), 64 << 20);
    assert_eq!(kept.about, all.about);
    assert_eq!(kept.threads, all.threads);
    assert_eq!(kept.code, all.code);
    assert_eq!(Timeline::of(&kept), Timeline::of(&all));
}

#[test]
fn threads_are_at_any_time_in_the_state_of_the_whole_trace() {
    for seed in 0..20 {
        let (all, kept, _) = run(seed, 60, Duration::from_millis(20), 64 << 20);
        let later = kept.start - all.start;
        assert!(kept.end - kept.start >= 20 * PASS, "at least as long as asked for");
        assert!(kept.end - kept.start <= 23 * PASS, "and the rest of a pass");
        assert_eq!(kept.about("started"), Some((5_000_000 + later).to_string().as_str()));
        let (whole, part) = (Timeline::of(&all), Timeline::of(&kept));
        assert_eq!(part.threads.len(), THREADS as usize);
        for (whole, part) in whole.threads.iter().zip(&part.threads) {
            assert_eq!((&whole.name, part.oddities), (&part.name, 0));
            for time in (0..kept.end - kept.start).step_by(7_919) {
                assert_eq!(
                    state(part, time),
                    state(whole, later + time),
                    "seed {seed}: {} at {time}",
                    part.name
                );
            }
            let open = |life: &Life, time| {
                life.marks.iter().filter(|mark| mark.start <= time && time < mark.end).count()
            };
            for time in (1..kept.end - kept.start).step_by(99_991) {
                assert_eq!(open(part, time), open(whole, later + time), "seed {seed}: marks at {time}");
            }
        }
        let moments = kept.threads.values().flat_map(|thread| &thread.moments);
        for stack in moments.filter(|moment| moment.kind == Kind::StackHolding) {
            let frame = kept.code.stack(stack.argument).next().expect("it is defined");
            assert_eq!(kept.code.text(frame), all.code.text(frame));
        }
    }
}

#[test]
fn memory_is_bounded_by_what_was_asked_for() {
    let memory = 1 << 20;
    for passes in [500, 5_000] {
        let (all, kept, ring) = run(3, passes, Duration::from_secs(3_600), memory);
        assert!(ring.size() <= memory, "{}", ring.size());
        assert!(passes < 1_000 || kept.events < all.events);
        assert!(passes < 1_000 || kept.code.frames.len() < all.code.frames.len());
    }
}

#[test]
fn threads_that_ended_long_ago_are_forgotten() {
    let mut ring = Ring::new(Duration::from_millis(1), 1 << 20);
    let mut body = Vec::new();
    wire::put_number(&mut body, 0);
    let mut section = Section::new();
    for thread in 1..=100 {
        let define = [Definition::Thread { id: thread, name: "short".into(), stand: Stand::Off }];
        ring.write_all(&wire::frame(wire::DEFINITIONS, &wire::definitions(&define))).expect("memory");
        section.begin(0);
        section.put(Event { time: u64::from(thread), thread, kind: Kind::ThreadStart, argument: 0 });
        section.put(Event { time: u64::from(thread) + 1, thread, kind: Kind::ThreadEnd, argument: 0 });
        section.finish(thread, &mut body);
    }
    ring.write_all(&wire::frame(wire::EVENTS, &body)).expect("memory");
    assert_eq!(ring.kept().known.threads.len(), 100);
    ring.write_all(&wire::frame(wire::FLUSH, &wire::flush(1 << 30, None))).expect("memory");
    let kept = ring.kept();
    assert_eq!((kept.known.threads.len(), kept.standing.len()), (0, 0));
}
