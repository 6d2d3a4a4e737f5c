//! The full-screen view: draws, waits for keys, and draws again.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyEventKind};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGTERM, SIGTSTP};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

use super::draw::Scene;
use super::processes::{Process, Processes};
use super::view::{View, Wanted};
use crate::arguments::Top;
use crate::failure::Failure;

/// How long a signal may go unnoticed.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// The shortest time for which `crossterm` looks at the terminal at all.
const AT_ONCE: Duration = Duration::from_millis(1);
/// The times between two refreshes that the keys choose from, in milliseconds.
const INTERVALS: [u64; 7] = [200, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

/// Shows the view until the user quits, or the processes that were named have ended.
pub(super) fn show(processes: &mut Processes, arguments: &Top) -> Result<(), Failure> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&ended)).map_err(failed)?;
    }
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut screen = Screen {
        view: View::default(),
        window: arguments.window,
        interval: arguments.interval,
        left: arguments.iterations,
        ended,
    };
    let shown = screen.run(&mut terminal, processes);
    if ratatui::try_restore().is_err() {
        // The terminal is gone, and so may be standard error: dropping `terminal` would print to that, and panic.
        mem::forget(terminal);
        return Ok(());
    }
    shown.map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::new(format!("the terminal: {error}"))
}

struct Screen {
    view: View,
    window: Duration,
    interval: Duration,
    /// How often the numbers are still to be taken.
    left: Option<u64>,
    ended: Arc<AtomicBool>,
}

impl Screen {
    fn run(&mut self, terminal: &mut DefaultTerminal, processes: &mut Processes) -> io::Result<()> {
        while self.left != Some(0) && !self.ended.load(Ordering::Relaxed) {
            if !self.view.is_paused {
                processes.refresh();
                self.left = self.left.map(|left| left - 1);
            }
            if processes.have_ended() {
                return Ok(());
            }
            if !self.wait(terminal, &processes.all())? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Draws, and takes keys, until the numbers are to be taken again. Whether they are.
    fn wait(&mut self, terminal: &mut DefaultTerminal, processes: &[&Process]) -> io::Result<bool> {
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        let began = Instant::now();
        self.draw(terminal, processes)?;
        while let Some(left) = self.interval.checked_sub(began.elapsed()) {
            let is_there = wait_for_input(left.min(LONGEST_WAIT))?;
            if !is_there || self.ended.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // Several keys may have arrived at once, or the terminal has another size.
            while event::poll(AT_ONCE)? {
                match self.take_key(&pids)? {
                    Wanted::Drawing => {}
                    Wanted::Refresh => return Ok(true),
                    Wanted::Slower(steps) => self.change_interval(steps),
                    Wanted::Suspension => suspend(terminal)?,
                    Wanted::Quitting => return Ok(false),
                }
            }
            self.draw(terminal, processes)?;
        }
        Ok(true)
    }

    fn take_key(&mut self, pids: &[u32]) -> io::Result<Wanted> {
        Ok(match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => self.view.press(key, pids),
            _ => Wanted::Drawing,
        })
    }

    fn draw(&self, terminal: &mut DefaultTerminal, processes: &[&Process]) -> io::Result<()> {
        let Self { view, window, interval, .. } = self;
        let scene = Scene { processes, view, window: *window, interval: *interval, has_keys: true };
        terminal.draw(|frame| scene.draw(frame.area(), frame.buffer_mut())).map(drop)
    }

    /// Takes the next longer time between two refreshes, or the next shorter one.
    fn change_interval(&mut self, steps: i32) {
        let now = self.interval.as_millis() as u64;
        let next = match steps {
            ..0 => INTERVALS.iter().rev().find(|interval| **interval < now),
            _ => INTERVALS.iter().find(|interval| **interval > now),
        };
        self.interval = next.map_or(self.interval, |next| Duration::from_millis(*next));
    }
}

/// Waits for input, at most so long. Whether the terminal still exists: `crossterm` alone would wait for one that is
/// gone, for ever and without a pause.
fn wait_for_input(at_most: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let at_most = at_most.try_into().map_err(io::Error::other)?;
    match poll(&mut polled, Some(&at_most)) {
        Ok(0) | Err(Errno::INTR) => Ok(true),
        Ok(_) => Ok(polled[0].revents() == PollFlags::IN),
        Err(error) => Err(error.into()),
    }
}

/// Gives the terminal back and stops this process until it is continued.
fn suspend(terminal: &mut DefaultTerminal) -> io::Result<()> {
    ratatui::restore();
    emulate_default_handler(SIGTSTP)?;
    *terminal = ratatui::try_init()?;
    terminal.clear()
}
