//! Passes signals on to the traced program while it runs.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::ptr;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    FORBIDDEN, SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;
use signal_hook::low_level::signal_name;

/// The signals that are always passed on.
const FORWARDED: [i32; 5] = [SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM];

/// A signal by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named(pub(crate) i32);

impl Named {
    /// The name without `SIG`.
    pub(crate) fn name(self) -> &'static str {
        signal_name(self.0).and_then(|name| name.strip_prefix("SIG")).unwrap_or_default()
    }
}

/// Reads the name of a signal that a program can handle, such as `USR2` or `SIGUSR2`.
pub(crate) fn parse(text: &str) -> Result<Named, String> {
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let found = (1..32).map(Named).find(|signal| !name.is_empty() && signal.name() == name);
    let can_be_handled = |signal: &Named| !FORBIDDEN.contains(&signal.0);
    found.filter(can_be_handled).ok_or_else(|| "it is no signal that a program can handle".to_owned())
}

/// A terminal sends these to all processes of its foreground group, so the program has received them already.
/// They are passed on only if a process has sent them.
const OF_TERMINALS: [i32; 3] = [SIGINT, SIGQUIT, SIGWINCH];

/// The running program, and the signals that arrived since before it started.
pub(crate) struct Running {
    pub(crate) child: Child,
    signals: SignalsInfo<WithOrigin>,
    /// A signal that is passed on besides the others.
    chosen: Option<i32>,
}

impl Running {
    /// Starts the program.
    ///
    /// A signal may arrive as soon as the program runs, so the handlers are installed before. Except for
    /// signals that are ignored (`nohup`, a job in the background), because the program should inherit that.
    pub(crate) fn start(command: &mut Command, chosen: Option<Named>) -> io::Result<Self> {
        let chosen = chosen.map(|signal| signal.0).filter(|signal| !OF_TERMINALS.contains(signal));
        let all = FORWARDED.into_iter().chain(OF_TERMINALS).chain(chosen);
        let (ignored, others): (Vec<i32>, Vec<i32>) = all.partition(|signal| is_ignored(*signal));
        let signals = SignalsInfo::new(others)?;
        keep_statuses(command);
        let child = command.spawn()?;
        ignored.into_iter().try_for_each(|signal| signals.handle().add_signal(signal))?;
        Ok(Self { child, signals, chosen })
    }

    /// Waits for the program and passes signals on to it.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        let handle = self.signals.handle();
        let pid = Pid::from_child(&self.child);
        let forwarder = std::thread::spawn(move || {
            for origin in
                self.signals.forever().filter(|origin| is_meant_for_the_program(origin, self.chosen))
            {
                let _ = Signal::from_named_raw(origin.signal).map(|signal| kill_process(pid, signal));
            }
        });
        let status = self.child.wait();
        handle.close();
        let _ = forwarder.join();
        status
    }
}

/// While `SIGCHLD` is ignored, the system forgets how children end. The program inherits that it is, if it is.
fn keep_statuses(command: &mut Command) {
    if is_ignored(SIGCHLD) {
        let handle = |action| {
            // SAFETY: neither action is a function. It may be called between fork and exec.
            unsafe { libc::signal(SIGCHLD, action) };
        };
        handle(libc::SIG_DFL);
        // SAFETY: the closure calls only the function above.
        unsafe {
            command.pre_exec(move || {
                handle(libc::SIG_IGN);
                Ok(())
            })
        };
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction; without a new action the call only writes the present one to it.
    let present = unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut present);
        present
    };
    present.sa_sigaction == libc::SIG_IGN
}

/// A signal that the system itself sends has no sending process.
fn is_meant_for_the_program(origin: &Origin, chosen: Option<i32>) -> bool {
    FORWARDED.contains(&origin.signal) || chosen == Some(origin.signal) || origin.process.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_a_name_with_or_without_sig() {
        assert_eq!(parse("USR2").map(Named::name), Ok("USR2"));
        assert_eq!(parse("SIGURG").map(Named::name), Ok("URG"));
        for refused in ["", "KILL", "STOP", "SEGV", "12", "usr", "SIG"] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }
}
