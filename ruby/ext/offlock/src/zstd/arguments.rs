//! The arguments that compressors and decompressors have in common: level, dictionary and parameters.

use magnus::r_hash::ForEach;
use magnus::value::{Qfalse, Qtrue, ReprValue};
use magnus::{Error, RHash, Ruby, Symbol, Value};
use offlock_core::zstd::{DecoderSettings, Parameter, Settings, window_log_max_bounds};

use super::bounds;
use super::dictionary::Given;

/// The settings of a compressor. `parameters` has the library's parameters by their names.
pub(super) fn settings(
    ruby: &Ruby,
    level: Value,
    dict: Value,
    parameters: Option<RHash>,
) -> Result<Settings, Error> {
    let mut settings = Settings::default();
    let given = Given::of(ruby, dict)?;
    // A dictionary that was prepared for a level is used at that level, as in the original.
    let own_level = given.as_ref().and_then(|given| given.level);
    if let Some(level) = own_level.or(bounds::level(ruby, level)?) {
        settings.parameters.push((Parameter::LEVEL, level));
    }
    if let Some(parameters) = parameters {
        parameters.foreach(|name: Symbol, value: Value| {
            if !value.is_nil() {
                settings.parameters.push(parameter(ruby, name, value)?);
            }
            Ok(ForEach::Continue)
        })?;
    }
    settings.dictionary = given.map(|given| given.dictionary);
    Ok(settings)
}

/// The settings of a decompressor.
pub(super) fn decoder_settings(
    ruby: &Ruby,
    dict: Value,
    window_log_max: Value,
) -> Result<DecoderSettings, Error> {
    let mut settings = DecoderSettings::default();
    if !window_log_max.is_nil() {
        let bounds = window_log_max_bounds();
        settings.window_log_max =
            Some(bounds::integer_within(ruby, "window_log_max", window_log_max, &bounds)?);
    }
    settings.dictionary = Given::of(ruby, dict)?.map(|given| given.dictionary);
    Ok(settings)
}

fn parameter(ruby: &Ruby, name: Symbol, value: Value) -> Result<(Parameter, i32), Error> {
    let name = name.name()?;
    let Some(parameter) = Parameter::named(&name).filter(|&parameter| parameter != Parameter::LEVEL) else {
        return Err(Error::new(ruby.exception_arg_error(), format!("unknown keyword: :{name}")));
    };
    let value = if Qtrue::from_value(value).is_some() {
        1
    } else if Qfalse::from_value(value).is_some() {
        0
    } else {
        bounds::integer_within(ruby, &name, value, &parameter.bounds())?
    };
    Ok((parameter, value))
}
