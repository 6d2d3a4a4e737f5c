//! A trace file with any content is read, analyzed and exported without a panic. The input describes frames:
//! a byte for the kind, a byte for the length, and the body. The target adds right checksums, so that bodies
//! are read.

use offlock_core::Task;
use offlock_core::deflate::crc32;
use offlock_core::trace::{Comparison, Format, Recording, Summary, Timeline, write_comparison};

fn file(mut input: &[u8]) -> Vec<u8> {
    let mut file = b"offlock\x01".to_vec();
    while let [kind, length, rest @ ..] = input {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let mut frame = vec![kind % 7];
        frame.extend((body.len() as u32).to_le_bytes());
        let task = Task::new();
        let head = crc32(0, &frame, &task).expect("nothing stops the task");
        frame.extend(crc32(head, body, &task).expect("nothing stops the task").to_le_bytes());
        file.extend(frame);
        file.extend(body);
        input = rest;
    }
    file
}

fn judge(bytes: &[u8]) {
    let Ok(recording) = Recording::read(bytes, &Task::new()) else { return };
    let timeline = Timeline::of(&recording);
    for life in &timeline.threads {
        let lived: u64 = life.states().map(|(slice, end)| end - slice.start).sum();
        assert_eq!(lived, life.end - life.start, "the states cover the thread's life without gaps");
    }
    let summary = Summary::of(&recording, &timeline);
    let _ = (summary.to_text(), summary.to_json());
    let nothing = Recording::default();
    let nothing = Summary::of(&nothing, &Timeline::of(&nothing));
    for (before, after) in [(&summary, &summary), (&summary, &nothing), (&nothing, &summary)] {
        Comparison::of(before, after).to_text();
    }
    let one = ("one", &recording, &timeline);
    write_comparison(one, ("other", &recording, &timeline), &mut std::io::sink())
        .expect("a sink takes everything");
    export(&recording, &timeline);
    let middle = timeline.length / 2;
    for period in [0..middle, middle..u64::MAX] {
        let cut = recording.clone().cut(period, |name| name.len() % 2 == 0);
        export(&cut, &Timeline::of(&cut));
    }
}

fn export(recording: &Recording, timeline: &Timeline) {
    for format in [
        Format::Perfetto,
        Format::GvlTracing,
        Format::Firefox,
        Format::Speedscope,
        Format::Collapsed,
        Format::Json,
        Format::Html,
    ] {
        format.write(recording, timeline, &mut std::io::sink()).expect("a sink takes everything");
    }
}

/// Runs the target on one input.
pub fn run(input: &[u8]) {
    judge(input);
    judge(&file(input));
}
