//! Levels of vector instructions, by features of the processor.
//!
//! In: the answer of CPUID, and of the operating system, which must save the wider registers. Out: a [`Level`] that can
//! run on this machine, or a message with the missing features.

use chainrule_base::Diagnostic;
use std::sync::LazyLock;

/// A set of instructions that code may use. Later levels include earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// AVX, AVX2 and FMA: 16 vector registers, 4 doubles in each.
    Avx2,
    /// Also AVX-512 F, DQ, VL and BW: 32 vector registers with 8 doubles each, masks.
    Avx512,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Self; 2] = [Self::Avx2, Self::Avx512];

    /// Returns the name, as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
        }
    }

    /// Returns the features that this machine lacks for the level, in CPUID's names; empty if its code can run.
    #[must_use]
    pub fn missing(self) -> Vec<&'static str> {
        let avx2 = [
            ("avx", std::is_x86_feature_detected!("avx")),
            ("avx2", std::is_x86_feature_detected!("avx2")),
            ("fma", std::is_x86_feature_detected!("fma")),
        ];
        let avx512 = [
            ("avx512f", std::is_x86_feature_detected!("avx512f")),
            ("avx512dq", std::is_x86_feature_detected!("avx512dq")),
            ("avx512vl", std::is_x86_feature_detected!("avx512vl")),
            ("avx512bw", std::is_x86_feature_detected!("avx512bw")),
        ];
        let further: &[_] = if self == Self::Avx512 { &avx512 } else { &[] };
        avx2.iter().chain(further).filter(|(_, there)| !there).map(|(name, _)| *name).collect()
    }

    /// Returns the highest level of this machine.
    ///
    /// # Errors
    /// A limitation, if the machine lacks the lowest level.
    pub fn best() -> Result<Self, Diagnostic> {
        // Queried for each function.
        static BEST: LazyLock<Option<Level>> =
            LazyLock::new(|| Level::ALL.into_iter().rev().find(|level| level.missing().is_empty()));
        match *BEST {
            Some(level) => Ok(level),
            None => Err(Diagnostic::limitation("this processor is too old for native code")
                .with_reason(lacks(&Self::Avx2.missing()))
                .with_help("take the interpreter, or emit C")),
        }
    }

    /// Returns the level, if its code can run on this machine.
    ///
    /// # Errors
    /// An error with the missing features.
    pub fn require(self) -> Result<Self, Diagnostic> {
        self.require_nothing_of(&self.missing())
    }

    fn require_nothing_of(self, missing: &[&'static str]) -> Result<Self, Diagnostic> {
        if missing.is_empty() {
            return Ok(self);
        }
        Err(Diagnostic::error(format!("this machine cannot run {} code", self.name()))
            .with_reason(lacks(missing))
            .with_help("ask for no level: the best one of the machine is taken"))
    }
}

fn lacks(missing: &[&str]) -> String {
    format!("the processor, or its operating system, lacks {}", missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn the_best_level_is_required_without_complaint() {
        match Level::best() {
            Ok(level) => assert_eq!(level.require(), Ok(level)),
            Err(message) => assert!(message.to_string().contains("lacks"), "{message}"),
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let message = Level::Avx512.require_nothing_of(&["avx512dq", "avx512vl"]).unwrap_err();
        assert_eq!(
            message.to_string(),
            "error: this machine cannot run AVX-512 code: the processor, or its operating system, lacks avx512dq, \
             avx512vl (help: ask for no level: the best one of the machine is taken)"
        );
    }
}
