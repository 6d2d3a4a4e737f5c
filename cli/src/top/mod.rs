//! `offlock top`: shows what the threads of running processes do, as they do it.
//!
//! ```text
//!  processes  connects, keeps the last seconds of each ──▶ sample ──▶ draw ──▶ screen, or text
//!                                                           view ──────┘
//!                                                            ▲ keys
//! ```

mod draw;
mod processes;
mod sample;
mod screen;
mod view;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use offlock_core::trace::{Connection, published, stacks_from};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::arguments::Top;
use crate::failure::Failure;
use crate::look;
use crate::published::{cannot_connect, there_is_none};
use draw::Scene;
use processes::{Processes, Wish};
use view::View;

/// How long the first numbers may take: a process says once a second what is complete.
const FIRST_NUMBERS: Duration = Duration::from_secs(6);
/// How often the first numbers are asked for.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &Top) -> Result<(), Failure> {
    if arguments.pids.is_empty() && published().is_empty() {
        return Err(there_is_none());
    }
    let stacks = arguments.stacks.as_deref().unwrap_or("1ms");
    let wish = Wish { window: arguments.window, stacks: stacks_from(stacks).map_err(Failure::new)? };
    let mut processes = Processes::new(arguments.pids.clone(), wish);
    check_named(&processes, &arguments.pids)?;
    let is_screen = !arguments.batch && io::stdout().is_terminal() && io::stdin().is_terminal();
    if is_screen { screen::show(&mut processes, arguments) } else { print(&mut processes, arguments) }
}

/// Refuses processes that the user has named and that cannot be watched, nor any of what they have started.
fn check_named(processes: &Processes, pids: &[u32]) -> Result<(), Failure> {
    if pids.is_empty() || processes.is_any_there() {
        return Ok(());
    }
    // It says why.
    match Connection::open(pids[0], None) {
        Err(error) => Err(cannot_connect(pids[0], &error)),
        Ok(_) => Ok(()),
    }
}

/// Waits for the numbers of the processes that are there, but not of those that begin meanwhile, as the workers of a server
/// may do all the time.
fn wait_for_numbers(processes: &mut Processes) {
    let (deadline, mut pids) = (Instant::now() + FIRST_NUMBERS, Vec::new());
    while Instant::now() < deadline && (pids.is_empty() || !processes.have_numbers(&pids)) {
        std::thread::sleep(STEP);
        processes.refresh();
        if pids.is_empty() {
            pids = processes.pids();
        }
    }
}

/// Prints the view again and again, as often as the user has asked for.
fn print(processes: &mut Processes, arguments: &Top) -> Result<(), Failure> {
    wait_for_numbers(processes);
    let width = look::of(&io::stdout()).width;
    let mut left = arguments.iterations.unwrap_or(u64::MAX);
    while left > 0 {
        processes.refresh();
        if processes.have_ended() {
            break;
        }
        let all = processes.all();
        let scene = Scene {
            processes: &all,
            view: &View::default(),
            window: arguments.window,
            interval: arguments.interval,
            has_keys: false,
        };
        match io::stdout().lock().write_all(text(&scene, width).as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written.map_err(|error| Failure::with_file(Path::new("-"), &error))?,
        }
        left -= 1;
        if left > 0 {
            std::thread::sleep(arguments.interval);
        }
    }
    Ok(())
}

/// What is drawn as lines of text.
fn text(scene: &Scene<'_>, width: usize) -> String {
    let width = u16::try_from(width).unwrap_or(u16::MAX).max(40);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, scene.height()));
    scene.draw(buffer.area, &mut buffer);
    let row = |y: u16| (0..width).map(move |x| (x, y));
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let line: String = row(y).filter_map(|place| buffer.cell(place)).map(|cell| cell.symbol()).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out + "\n\n"
}
