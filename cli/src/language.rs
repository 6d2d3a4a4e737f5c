//! Which language a program is in, to say what is wrong when it cannot be traced.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A language whose programs can be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Ruby,
    Python,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ruby => "Ruby",
            Self::Python => "Python",
        })
    }
}

impl Language {
    const ALL: [Self; 2] = [Self::Ruby, Self::Python];

    /// The interpreter's usual name.
    fn interpreter(self) -> &'static str {
        match self {
            Self::Ruby => "ruby",
            Self::Python => "python",
        }
    }

    /// The environment variable in which the package for this language says where its files are.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Ruby => "OFFLOCK_RUBYLIB",
            Self::Python => "OFFLOCK_PYTHONPATH",
        }
    }

    /// The language of a program that can be run: an interpreter, or a script that names one in its first lines.
    fn of_program(program: &OsStr) -> Option<Self> {
        let path = find(program)?;
        let name = Path::new(program).file_name()?.to_str()?;
        let named = Self::ALL.into_iter().find(|language| name.starts_with(language.interpreter()));
        named.or_else(|| Self::of_script(&path))
    }

    fn of_script(path: &Path) -> Option<Self> {
        let mut beginning = Vec::new();
        File::open(path).ok()?.take(256).read_to_end(&mut beginning).ok()?;
        let beginning = String::from_utf8_lossy(&beginning);
        let head = beginning.strip_prefix("#!")?.lines().take(2).collect::<Vec<_>>().join(" ");
        Self::ALL.into_iter().find(|language| head.contains(language.interpreter()))
    }
}

/// The file that runs when a shell is asked for this program.
pub(crate) fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|file| file.is_file())
}

/// What to do about a program in one language and a command of the package for the other one.
pub(crate) fn wrong_package(program: &OsStr) -> Option<String> {
    let needed = Language::of_program(program)?;
    let has = |language: &Language| std::env::var_os(language.variable()).is_some();
    let own = Language::ALL.into_iter().find(|language| *language != needed && has(language))?;
    let fix = match needed {
        Language::Ruby => "gem install offlock, then \"$(ruby -e 'print Gem.bindir')/offlock\" trace",
        Language::Python => "pip install offlock, then python -m offlock trace",
    };
    (!has(&needed)).then(|| {
        let program = Path::new(program).display();
        format!("{program}: it is a {needed} program, and this command is of the {own} package: {fix}")
    })
}

/// How to run a script that cannot be run by itself.
pub(crate) fn with_interpreter(program: &OsStr) -> Option<String> {
    let path = Path::new(program);
    let language = match path.extension()?.to_str()? {
        "py" => Language::Python,
        "rb" => Language::Ruby,
        _ => return None,
    };
    let interpreter = language.interpreter();
    path.is_file().then(|| format!("offlock trace -- {interpreter} {}", path.display()))
}
