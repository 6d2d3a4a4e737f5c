//! The parameters of compressors and decompressors, and their bounds.

#![allow(unsafe_code)]

use std::ops::RangeInclusive;

use z::ZSTD_cParameter as C;
use zstd::zstd_safe::zstd_sys as z;

/// The level of a compressor that was given none.
pub const DEFAULT_LEVEL: i32 = 3;

/// A parameter of a compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter(C);

/// All of them, with their names.
const ALL: [(C, &str); 19] = [
    (C::ZSTD_c_compressionLevel, "compression_level"),
    (C::ZSTD_c_windowLog, "window_log"),
    (C::ZSTD_c_hashLog, "hash_log"),
    (C::ZSTD_c_chainLog, "chain_log"),
    (C::ZSTD_c_searchLog, "search_log"),
    (C::ZSTD_c_minMatch, "min_match"),
    (C::ZSTD_c_targetLength, "target_length"),
    (C::ZSTD_c_strategy, "strategy"),
    (C::ZSTD_c_enableLongDistanceMatching, "enable_long_distance_matching"),
    (C::ZSTD_c_ldmHashLog, "ldm_hash_log"),
    (C::ZSTD_c_ldmMinMatch, "ldm_min_match"),
    (C::ZSTD_c_ldmBucketSizeLog, "ldm_bucket_size_log"),
    (C::ZSTD_c_ldmHashRateLog, "ldm_hash_rate_log"),
    (C::ZSTD_c_contentSizeFlag, "content_size_flag"),
    (C::ZSTD_c_checksumFlag, "checksum_flag"),
    (C::ZSTD_c_dictIDFlag, "dict_id_flag"),
    (C::ZSTD_c_nbWorkers, "nb_workers"),
    (C::ZSTD_c_jobSize, "job_size"),
    (C::ZSTD_c_overlapLog, "overlap_log"),
];

impl Parameter {
    /// The level; it sets the other parameters that are not set.
    pub const LEVEL: Self = Self(C::ZSTD_c_compressionLevel);
    /// The number of threads that compress beside the caller's.
    pub const WORKERS: Self = Self(C::ZSTD_c_nbWorkers);
    /// Whether a frame ends with a checksum of its content.
    pub const CHECKSUM: Self = Self(C::ZSTD_c_checksumFlag);

    /// The parameter with the library's number `code`.
    pub fn of(code: i32) -> Option<Self> {
        ALL.iter().find(|(parameter, _)| *parameter as i32 == code).map(|&(parameter, _)| Self(parameter))
    }

    /// The parameter called `name`.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|(_, known)| *known == name).map(|&(parameter, _)| Self(parameter))
    }

    /// The library's number.
    pub const fn code(self) -> i32 {
        self.0 as i32
    }

    /// The name.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(parameter, _)| *parameter == self.0).map_or("", |&(_, name)| name)
    }

    /// The values that it can have.
    pub fn bounds(self) -> RangeInclusive<i32> {
        // SAFETY: takes any parameter.
        let bounds = unsafe { z::ZSTD_cParam_getBounds(self.0) };
        bounds.lowerBound..=bounds.upperBound
    }

    pub(super) const fn raw(self) -> C {
        self.0
    }

    /// Whether it has no influence on how long a block takes.
    pub(super) const fn is_harmless(self) -> bool {
        matches!(
            self.0,
            C::ZSTD_c_compressionLevel
                | C::ZSTD_c_contentSizeFlag
                | C::ZSTD_c_checksumFlag
                | C::ZSTD_c_dictIDFlag
        )
    }
}

/// The one parameter of a decompressor: the largest window that it accepts, as a power of two.
pub const WINDOW_LOG_MAX: i32 = z::ZSTD_dParameter::ZSTD_d_windowLogMax as i32;

/// The values that [`WINDOW_LOG_MAX`] can have.
pub fn window_log_max_bounds() -> RangeInclusive<i32> {
    // SAFETY: takes any parameter.
    let bounds = unsafe { z::ZSTD_dParam_getBounds(z::ZSTD_dParameter::ZSTD_d_windowLogMax) };
    bounds.lowerBound..=bounds.upperBound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_number_and_by_name() {
        for (parameter, name) in ALL {
            let parameter = Parameter(parameter);
            assert_eq!((Parameter::of(parameter.code()), parameter.name()), (Some(parameter), name));
            assert_eq!(Parameter::named(name), Some(parameter));
            assert!(parameter.bounds().contains(parameter.bounds().start()), "{name}");
        }
        assert_eq!((Parameter::of(99), Parameter::named("speed")), (None, None));
        assert_eq!(*Parameter::LEVEL.bounds().end(), 22);
        assert!(*Parameter::WORKERS.bounds().end() > 1, "compiled for several threads");
        assert!(window_log_max_bounds().contains(&27));
    }
}
