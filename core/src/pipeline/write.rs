//! Writing files of tokens.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::documents::{Encoded, Extraction, OnError};
use super::error::{Error, ErrorKind};
use super::folder::Folder;
use super::model::Model;
use super::output::{Eos, Output, Target, Writer};
use super::part::Part;
use super::run::{Plan, Run, Sink};
use super::settings::Settings;
use super::shard::{Format, Shard, check_names};
use super::summary::{Summary, Written};
use crate::Task;
use crate::tokens::TokenId;

/// Where tokens are written, and how.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The folder, which is made if it is not there. It must be empty, or that of a run that is resumed.
    pub folder: PathBuf,
    /// The format of the files.
    pub output: Output,
    /// Where the token that separates documents goes; `None` for where the format's own writer puts it.
    pub eos: Option<Eos>,
    /// The text of that token.
    pub eos_token: String,
    /// Whether an earlier run is continued: shards that it finished are left alone.
    pub resume: bool,
    /// The part of the shards that this process writes beside others, which write the others; `None` for all shards.
    pub part: Option<Part>,
}

/// Writes the tokens of `shards` to files, one or several for each shard.
///
/// What stands in the folder under a final name is whole, whatever happens. After the last shard a `manifest.json`
/// lists all files with their checksums.
///
/// A part of a run leaves shards alone that are finished, and writes no manifest: once all parts are written, a run
/// over all shards that is resumed does that, and makes what is missing.
///
/// # Errors
///
/// As [`count`](super::count); `Invalid` if the format cannot hold the vocabulary, the separating token is
/// unknown, two shards have the same name, another run writes to the folder, or it has other results.
pub fn write(
    shards: &[Shard],
    settings: &Settings,
    destination: &Destination,
    report: &(dyn Fn(&Error) + Sync),
    task: &Task<'_>,
) -> Result<Summary, Error> {
    let wrong = |kind: ErrorKind| Error::new(&destination.folder, kind);
    let model = &settings.model;
    let eos = destination.check(shards, model)?;
    let described = destination.describe(settings);
    let folder = match destination.part {
        None => Folder::open(&destination.folder, shards, &described, destination.resume)?,
        Some(_) => Folder::join(&destination.folder, &described)?,
    };
    let shards = destination.part.map_or(Cow::Borrowed(shards), |part| Cow::Owned(part.of(shards)));
    let id = ["id".to_owned()];
    let begin = |index: usize| match folder.done(&shards[index]).map_err(|error| wrong(error.into()))? {
        Some(done) => Ok(Plan::Finished(done)),
        None => destination.begin(&folder, &shards[index], index, model),
    };
    let run = Run {
        shards: &shards,
        format: settings.format,
        extraction: Extraction {
            id: destination.output.names_documents().then_some(&id),
            keep_beside: destination.output.keeps_columns_beside(),
            before: eos.filter(|_| destination.place_of_eos() == Eos::Prepend),
            after: eos.filter(|_| destination.place_of_eos() == Eos::Append),
            may_be_empty: destination.output.holds_empty_documents(),
            ..settings.extraction()
        },
        report,
        threads: settings.thread_count(),
        begin: &begin,
        finished: &|shard, done| folder.finish(shard, done),
    };
    let summary = run.run(task)?;
    if destination.part.is_none() {
        folder.complete(&described, &summary).map_err(|error| wrong(error.into()))?;
    }
    Ok(summary)
}

/// Makes the folder ready for the parts of a run, as [`write`] does before the first shard: checks the settings and the
/// folder, and removes what an earlier run has not finished. `part` plays no role.
///
/// # Errors
///
/// Those of [`write`] that do not concern a shard's content.
pub fn prepare(shards: &[Shard], settings: &Settings, destination: &Destination) -> Result<(), Error> {
    destination.check(shards, &settings.model)?;
    let described = destination.describe(settings);
    Folder::open(&destination.folder, shards, &described, destination.resume).map(drop)
}

impl Destination {
    /// Checks everything but the folder. Returns the token that separates documents, if one does.
    fn check(&self, shards: &[Shard], model: &Model) -> Result<Option<TokenId>, Error> {
        let wrong = |kind: ErrorKind| Error::new(&self.folder, kind);
        check_names(shards)?;
        self.output.check_vocabulary(model.n_vocab()).map_err(wrong)?;
        self.eos(model).map_err(wrong)
    }

    fn place_of_eos(&self) -> Eos {
        self.eos.unwrap_or_else(|| self.output.usual_eos())
    }

    fn eos(&self, model: &Model) -> Result<Option<TokenId>, ErrorKind> {
        if self.place_of_eos() == Eos::None {
            return Ok(None);
        }
        model.special(&self.eos_token).map(Some).ok_or_else(|| {
            let (name, token) = (model.name(), &self.eos_token);
            let message = format!(
                "{name} has no special token {token}; name the one that separates documents, or none"
            );
            ErrorKind::Invalid { message }
        })
    }

    /// What results depend on.
    fn describe(&self, settings: &Settings) -> Value {
        let eos = match self.place_of_eos() {
            Eos::Append => "append",
            Eos::Prepend => "prepend",
            Eos::None => "none",
        };
        json!({
            "model": settings.model.identity(),
            "field": settings.field.join("."),
            "format": settings.format.map(Format::name),
            "output": self.output.name(),
            "eos": eos,
            "eos_token": if eos == "none" { None } else { Some(&self.eos_token) },
            "max_doc_bytes": settings.max_doc_bytes,
            "on_error": if settings.on_error == OnError::Fail { "fail" } else { "skip" },
        })
    }

    fn begin(&self, folder: &Folder, shard: &Shard, index: usize, model: &Model) -> Result<Plan, Error> {
        let (name, source) = (shard.name.clone(), shard.path.clone());
        let target = Target { folder: folder.unfinished().to_owned(), index, name, source };
        let writer = self.output.begin(&target, model.name(), model.n_vocab());
        let writer = writer.map_err(|error| Error::new(folder.path(), error))?;
        Ok(Plan::Read(Some(Box::new(Files { writer, folder: folder.path().to_owned() }))))
    }
}

/// The files of a shard that is being read.
struct Files {
    writer: Box<dyn Writer>,
    folder: PathBuf,
}

impl Sink for Files {
    fn take(&mut self, encoded: &Encoded, task: &Task<'_>) -> Result<(), ErrorKind> {
        if let Some(kept) = &encoded.kept {
            self.writer.keep(kept)?;
        }
        let mut start = 0;
        for document in &encoded.documents {
            self.writer.write(&encoded.tokens[start..document.end], document, task)?;
            start = document.end;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, task: &Task<'_>) -> Result<Vec<Written>, ErrorKind> {
        let folder: &Path = &self.folder;
        self.writer.finish()?.into_iter().map(|file| file.finish(folder, task)).collect()
    }
}
