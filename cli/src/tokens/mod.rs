//! `offlock tokens`: counts the tokens of shards, or writes them to files.

pub(crate) mod arguments;
mod progress;
mod show;

use std::time::Instant;

use arguments::{Count, Input, Tokens, TokensCommand, Write};
use offlock_core::Task;
use offlock_core::pipeline::{
    self, Destination, Error, ErrorKind, Model, Settings, Shard, Summary, TokenizerSource,
};

use crate::failure::Failure;

pub(crate) fn run(arguments: &Tokens) -> Result<(), Failure> {
    match &arguments.command {
        TokensCommand::Count(arguments) => count(arguments),
        TokensCommand::Write(arguments) => write(arguments),
    }
}

fn count(arguments: &Count) -> Result<(), Failure> {
    let (shards, settings) = arguments.input.read()?;
    let began = Instant::now();
    let summary = during(&shards, "", |task| pipeline::count(&shards, &settings, &report, task))?;
    show::print(&summary, settings.model.name(), began.elapsed(), arguments.json)
}

fn write(arguments: &Write) -> Result<(), Failure> {
    let (shards, settings) = arguments.input.read()?;
    let destination = Destination {
        folder: arguments.folder.clone(),
        output: arguments.output,
        eos: arguments.eos.map(arguments::EosPlace::core),
        eos_token: arguments.eos_token.clone(),
        resume: arguments.resume,
        part: arguments.part,
    };
    let began = Instant::now();
    let summary = during(&shards, "; continue with --resume", |task| {
        pipeline::write(&shards, &settings, &destination, &report, task)
    })?;
    show::print(&summary, settings.model.name(), began.elapsed(), arguments.json)
}

/// Runs over the shards; `advice` is what helps after an interruption.
fn during(
    shards: &[Shard],
    advice: &str,
    work: impl FnOnce(&Task<'_>) -> Result<Summary, Error>,
) -> Result<Summary, Failure> {
    let (result, signal) = progress::during(shards.iter().map(|shard| shard.size).sum(), work);
    result.map_err(|error| match error.kind {
        // The exit status is that which shells report of a program that the signal has ended.
        ErrorKind::Stopped => Failure { message: format!("interrupted{advice}"), status: 128 + signal as u8 },
        _ => Failure::new(error.to_string()),
    })
}

/// Prints what is wrong with a record that is left out.
fn report(error: &Error) {
    eprintln!("offlock: {error}");
}

impl Input {
    /// Finds the shards and loads what encodes their texts.
    fn read(&self) -> Result<(Vec<Shard>, Settings), Failure> {
        let plain = |error: &Error| Failure::new(error.to_string());
        let shards = pipeline::find(&self.paths).map_err(|error| plain(&error))?;
        let settings = Settings {
            format: self.format.0,
            field: self.field.split('.').map(str::to_owned).collect(),
            max_doc_bytes: self.max_doc_bytes,
            on_error: self.on_error.core(),
            threads: self.threads.map_or(0, usize::from),
            ..Settings::new(self.load()?)
        };
        Ok((shards, settings))
    }

    fn load(&self) -> Result<Model, Failure> {
        let (encoding, model) = (self.encoding.as_deref(), self.model.as_deref());
        let model = Model::choose(
            encoding,
            model,
            self.tokenizer.as_deref().map(TokenizerSource::File),
            &Task::new(),
        );
        model.map_err(|error| Failure::new(error.to_string()))
    }
}
