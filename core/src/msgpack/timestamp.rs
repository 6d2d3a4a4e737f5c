//! Timestamps: the extension type -1.

use super::error::{Error, ErrorKind};

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC, without leap seconds.
    pub seconds: i64,
    /// Nanoseconds to add.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The extension type.
    pub const TYPE: i8 = -1;

    /// Reads the payload of an extension of this type that begins at `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timestamp`] if the payload is not 4, 8 or 12 bytes long.
    pub fn from_payload(payload: &[u8], offset: usize) -> Result<Self, Error> {
        if let Ok(bytes) = <[u8; 4]>::try_from(payload) {
            return Ok(Self { seconds: u32::from_be_bytes(bytes).into(), nanoseconds: 0 });
        }
        if let Ok(bytes) = <[u8; 8]>::try_from(payload) {
            let both = u64::from_be_bytes(bytes);
            return Ok(Self {
                seconds: (both & 0x3_ffff_ffff).cast_signed(),
                nanoseconds: (both >> 34) as u32,
            });
        }
        match payload.split_first_chunk::<4>() {
            Some((nanoseconds, seconds)) if seconds.len() == 8 => Ok(Self {
                seconds: seconds.iter().fold(0, |all, &byte| all << 8 | i64::from(byte)),
                nanoseconds: u32::from_be_bytes(*nanoseconds),
            }),
            _ => Err(Error::new(ErrorKind::Timestamp(payload.len()), offset)),
        }
    }

    /// The payload in its shortest form: the first `.1` bytes of `.0`.
    pub fn payload(self) -> ([u8; 12], usize) {
        let mut payload = [0; 12];
        let length = match u64::try_from(self.seconds) {
            Ok(seconds) if seconds >> 32 == 0 && self.nanoseconds == 0 => {
                payload[..4].copy_from_slice(&(seconds as u32).to_be_bytes());
                4
            }
            Ok(seconds) if seconds >> 34 == 0 && self.nanoseconds >> 30 == 0 => {
                let both = u64::from(self.nanoseconds) << 34 | seconds;
                payload[..8].copy_from_slice(&both.to_be_bytes());
                8
            }
            _ => {
                payload[..4].copy_from_slice(&self.nanoseconds.to_be_bytes());
                payload[4..].copy_from_slice(&self.seconds.to_be_bytes());
                12
            }
        };
        (payload, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_sizes_come_back() {
        for (seconds, nanoseconds, size) in [
            (0, 0, 4),
            (u32::MAX.into(), 0, 4),
            (1 << 32, 0, 8),
            (1, 1, 8),
            ((1 << 34) - 1, 999_999_999, 8),
            (1 << 34, 0, 12),
            (-1, 999_999_999, 12),
            (i64::MIN, 0, 12),
            (i64::MAX, 1, 12),
        ] {
            let timestamp = Timestamp { seconds, nanoseconds };
            let (payload, length) = timestamp.payload();
            assert_eq!(length, size, "{timestamp:?}");
            assert_eq!(Timestamp::from_payload(&payload[..length], 0), Ok(timestamp));
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        for length in (0..20).filter(|length| ![4, 8, 12].contains(length)) {
            let error = Timestamp::from_payload(&[0; 20][..length], 3).unwrap_err();
            assert_eq!(error, Error::new(ErrorKind::Timestamp(length), 3));
        }
    }
}
