//! What the user has chosen to see, and the keys that change it.

use std::cmp::Reverse;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use offlock_core::trace::State;

use super::sample::{Row, Sample};

/// What the user has chosen to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    /// The process whose threads are shown; the first one if it is none of those there are.
    pub(super) pid: Option<u32>,
    pub(super) order: Order,
    /// Whether threads whose names differ in a number are one row.
    pub(super) by_group: bool,
    /// What the names of the threads that are shown contain.
    pub(super) filter: String,
    /// Whether the keys are part of the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    /// How many rows of threads are scrolled away.
    pub(super) scrolled: usize,
}

/// What threads are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Waiting,
    Running,
    OffLock,
    Name,
}

impl Order {
    const ALL: [Self; 4] = [Self::Waiting, Self::Running, Self::OffLock, Self::Name];

    pub(super) fn name(self) -> &'static str {
        ["waiting", "running", "off-lock", "name"][self as usize]
    }

    fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }
}

/// What a key asks for beyond a change of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing: the view is drawn again.
    Drawing,
    /// The numbers are to be taken again now.
    Refresh,
    /// A longer (1) or shorter (-1) time between two refreshes.
    Slower(i32),
    /// The command is to be suspended, as by Ctrl-Z.
    Suspension,
    /// The end.
    Quitting,
}

impl View {
    /// Changes the view as a key says. `pids` are the processes that are shown, in order.
    pub(super) fn press(&mut self, key: KeyEvent, pids: &[u32]) -> Wanted {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wanted::Quitting,
                KeyCode::Char('z') => Wanted::Suspension,
                KeyCode::Char('l') => Wanted::Refresh,
                _ => Wanted::Drawing,
            };
        }
        if self.is_typing {
            return self.type_filter(key.code);
        }
        if self.shows_help {
            self.shows_help = false;
            return Wanted::Drawing;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::F(10) => return Wanted::Quitting,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('s') | KeyCode::F(6) => self.order_by(self.order.next()),
            KeyCode::Char('W') => self.order_by(Order::Waiting),
            KeyCode::Char('P') => self.order_by(Order::Running),
            KeyCode::Char('O') => self.order_by(Order::OffLock),
            KeyCode::Char('N') => self.order_by(Order::Name),
            KeyCode::Char('g') | KeyCode::F(5) => self.by_group = !self.by_group,
            KeyCode::Char('/') | KeyCode::F(4) => self.is_typing = true,
            KeyCode::Char('c') => self.filter.clear(),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('r') => return Wanted::Refresh,
            KeyCode::Char('+') => return Wanted::Slower(-1),
            KeyCode::Char('-') => return Wanted::Slower(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(pids, -1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(pids, 1),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::PageDown => self.scrolled += 10,
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Wanted::Drawing
    }

    fn order_by(&mut self, order: Order) {
        (self.order, self.scrolled) = (order, 0);
    }

    fn type_filter(&mut self, key: KeyCode) -> Wanted {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => (self.is_typing, self.filter) = (false, String::new()),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.scrolled = 0;
        Wanted::Drawing
    }

    /// The place of the chosen process.
    pub(super) fn chosen(&self, pids: &[u32]) -> usize {
        pids.iter().position(|pid| Some(*pid) == self.pid).unwrap_or(0)
    }

    fn choose(&mut self, pids: &[u32], step: isize) {
        let place = self.chosen(pids).saturating_add_signed(step).min(pids.len().saturating_sub(1));
        (self.pid, self.scrolled) = (pids.get(place).copied(), 0);
    }

    /// The threads or groups to be shown, in order.
    pub(super) fn rows<'a>(&self, sample: &'a Sample) -> Vec<&'a Row> {
        let all = if self.by_group { &sample.groups } else { &sample.threads };
        let filter = self.filter.to_lowercase();
        let mut rows: Vec<&Row> =
            all.iter().filter(|row| row.name.to_lowercase().contains(&filter)).collect();
        let share = |row: &Row, state: State| Reverse((row.shares[state as usize] * 1e4) as u64);
        let running = |row: &Row| {
            Reverse(((row.shares[State::Running as usize] + row.shares[State::Gc as usize]) * 1e4) as u64)
        };
        match self.order {
            Order::Waiting => rows.sort_by_key(|row| (share(row, State::Waiting), running(row))),
            Order::Running => rows.sort_by_key(|row| running(row)),
            Order::OffLock => rows.sort_by_key(|row| share(row, State::OffLock)),
            Order::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &str) -> Wanted {
        let press = |_, key| view.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE), &[10, 20, 30]);
        keys.chars().fold(Wanted::Drawing, press)
    }

    fn code(view: &mut View, code: KeyCode) -> Wanted {
        view.press(KeyEvent::new(code, KeyModifiers::NONE), &[10, 20, 30])
    }

    fn row(name: &str, running: f64, waiting: f64) -> Row {
        let mut shares = [0.0; 6];
        (shares[State::Running as usize], shares[State::Waiting as usize]) = (running, waiting);
        Row {
            name: name.into(),
            count: 1,
            now: State::Idle,
            shares,
            lost: 0.0,
            longest_wait: 0,
            behind: None,
        }
    }

    #[test]
    fn keys_choose_a_process_and_stay_among_those_there_are() {
        let mut view = View::default();
        assert_eq!(view.chosen(&[10, 20, 30]), 0);
        press(&mut view, "jjjj");
        assert_eq!(view.pid, Some(30));
        code(&mut view, KeyCode::Up);
        assert_eq!(view.pid, Some(20));
        assert_eq!(view.chosen(&[10, 30]), 0, "it has ended");
        assert_eq!(view.press(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE), &[]), Wanted::Drawing);
    }

    #[test]
    fn keys_ask_for_what_they_are_known_for() {
        let mut view = View::default();
        assert_eq!(press(&mut view, "q"), Wanted::Quitting);
        assert_eq!(code(&mut view, KeyCode::Esc), Wanted::Quitting);
        assert_eq!(press(&mut view, "r"), Wanted::Refresh);
        assert_eq!(press(&mut view, "+"), Wanted::Slower(-1));
        let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert_eq!(view.press(control('c'), &[]), Wanted::Quitting);
        assert_eq!(view.press(control('z'), &[]), Wanted::Suspension);
        press(&mut view, "?");
        assert!(view.shows_help);
        assert_eq!(press(&mut view, "q"), Wanted::Drawing, "any key ends the help");
        assert!(!view.shows_help);
    }

    #[test]
    fn a_filter_is_typed_and_given_up() {
        let mut view = View::default();
        press(&mut view, "/qWeb");
        assert!(view.is_typing && view.filter == "qWeb", "q does not quit");
        code(&mut view, KeyCode::Backspace);
        code(&mut view, KeyCode::Enter);
        assert!(!view.is_typing && view.filter == "qWe");
        press(&mut view, "c");
        assert_eq!(view.filter, "");
        press(&mut view, "/x");
        code(&mut view, KeyCode::Esc);
        assert_eq!(view, View::default());
    }

    #[test]
    fn rows_are_filtered_and_ordered() {
        let threads = vec![row("web-2", 0.1, 0.5), row("worker", 0.8, 0.0), row("Web-1", 0.2, 0.1)];
        let sample = Sample { threads, groups: vec![row("web-*", 0.3, 0.6)], ..Sample::default() };
        let mut view = View::default();
        let names = |view: &View| view.rows(&sample).iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&view), ["web-2", "Web-1", "worker"]);
        press(&mut view, "s");
        assert_eq!(
            (view.order, names(&view)),
            (Order::Running, vec!["worker".into(), "Web-1".into(), "web-2".into()])
        );
        press(&mut view, "N/web");
        assert_eq!(names(&view), ["Web-1", "web-2"]);
        code(&mut view, KeyCode::Enter);
        press(&mut view, "g");
        assert_eq!(names(&view), ["web-*"]);
    }
}
