//! The order given to the launcher, as its argument list: what to run, with which environment, for how long.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// Transparent huge pages for one process and its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thp {
    /// As the system has it.
    #[default]
    System,
    /// Everywhere; possible only where the system's own setting is `always`.
    Always,
    /// Only where the program requests them with `madvise` (Linux 6.18 and later when the system's setting is
    /// `always`).
    Madvise,
    /// Nowhere.
    Never,
}

impl Thp {
    /// As on command lines; empty for `System`.
    pub fn as_str(self) -> &'static str {
        match self {
            Thp::System => "",
            Thp::Always => "always",
            Thp::Madvise => "madvise",
            Thp::Never => "never",
        }
    }

    /// Reads [`Thp::as_str`] back.
    pub fn parse(text: &str) -> Option<Thp> {
        [Thp::System, Thp::Always, Thp::Madvise, Thp::Never].into_iter().find(|thp| thp.as_str() == text)
    }
}

/// What to run and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// Program and arguments; the program is looked up in `PATH`.
    pub command: Vec<OsString>,
    /// Set in the program's environment only, never in the launcher's (so `LD_PRELOAD` does not reach it).
    pub environment: Vec<(OsString, OsString)>,
    /// Milliseconds until everything is killed; 0 for no limit.
    pub timeout_ms: u64,
    /// Transparent huge pages.
    pub thp: Thp,
    /// Whether to open hardware counters.
    pub counters: bool,
    /// Descriptor on which the launcher writes its messages.
    pub report_fd: i32,
    /// Processor that the program is pinned to; `None` for all that the launcher may use.
    pub cpu: Option<u32>,
    /// Time slice that the program is given, microseconds; 0 for the kernel's own.
    pub slice_us: u64,
    /// Descriptor whose end of file starts the program; without one it starts immediately.
    pub gate_fd: Option<i32>,
    /// Whether the program is run again and again from its end on, unmeasured, until the launcher is cancelled: others
    /// that share its processor then go on sharing it.
    pub refill: bool,
    /// Whether a loop stands in for the program from its end on.
    pub refill_by_loop: bool,
    /// Whether the program has the same addresses in each run, where the system permits it.
    pub fixed_addresses: bool,
    /// Variables of `environment` that only the measured run has: what it finds by them is read when it has ended.
    pub measured_only: Vec<OsString>,
    /// Process that must still be the launcher's parent once it has requested the parent-death signal; 0 for any.
    pub parent: i32,
}

/// An argument list that is no order.
#[derive(Debug, PartialEq, Eq)]
pub struct SpecError(pub String);

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (heaptoll-launch is started by heaptoll, not by hand)", self.0)
    }
}

impl std::error::Error for SpecError {}

impl Spec {
    /// Time slice that the program is given; `None` for the kernel's own.
    pub fn slice(&self) -> Option<Duration> {
        (self.slice_us > 0).then(|| Duration::from_micros(self.slice_us))
    }

    /// The argument list that [`Spec::from_args`] reads.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec![
            "report".into(),
            self.report_fd.to_string().into(),
            "timeout".into(),
            self.timeout_ms.to_string().into(),
            "thp".into(),
            self.thp.as_str().into(),
            "counters".into(),
            if self.counters { "1" } else { "0" }.into(),
            "parent".into(),
            self.parent.to_string().into(),
        ];
        if let Some(cpu) = self.cpu {
            args.extend(["cpu".into(), cpu.to_string().into()]);
        }
        if self.slice_us > 0 {
            args.extend(["slice".into(), self.slice_us.to_string().into()]);
        }
        if let Some(gate) = self.gate_fd {
            args.extend(["gate".into(), gate.to_string().into()]);
        }
        if self.refill {
            args.push("refill".into());
        }
        if self.refill_by_loop {
            args.push("refill-by-loop".into());
        }
        if self.fixed_addresses {
            args.push("fixed-addresses".into());
        }
        for name in &self.measured_only {
            args.push("measured-only".into());
            args.push(name.clone());
        }
        for (name, value) in &self.environment {
            args.push("env".into());
            args.push(name.clone());
            args.push(value.clone());
        }
        args.push("--".into());
        args.extend(self.command.iter().cloned());
        args
    }

    /// Reads what [`Spec::to_args`] wrote.
    ///
    /// # Errors
    /// A word that is not expected, a missing value, an empty command.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Result<Spec, SpecError> {
        let mut spec = Spec::default();
        let mut args = args.into_iter();
        fn value(args: &mut impl Iterator<Item = OsString>, key: &OsStr) -> Result<OsString, SpecError> {
            args.next().ok_or_else(|| SpecError(format!("no value after {}", key.to_string_lossy())))
        }
        fn number<T: std::str::FromStr>(text: OsString) -> Result<T, SpecError> {
            let text = String::from_utf8_lossy(&text.into_vec()).into_owned();
            text.parse().map_err(|_| SpecError(format!("`{text}` is not a number")))
        }
        loop {
            let Some(key) = args.next() else { return Err(SpecError("no command".into())) };
            match key.as_bytes() {
                b"report" => spec.report_fd = number(value(&mut args, &key)?)?,
                b"parent" => spec.parent = number(value(&mut args, &key)?)?,
                b"cpu" => spec.cpu = Some(number(value(&mut args, &key)?)?),
                b"slice" => spec.slice_us = number(value(&mut args, &key)?)?,
                b"gate" => spec.gate_fd = Some(number(value(&mut args, &key)?)?),
                b"refill" => spec.refill = true,
                b"refill-by-loop" => spec.refill_by_loop = true,
                b"fixed-addresses" => spec.fixed_addresses = true,
                b"measured-only" => spec.measured_only.push(value(&mut args, &key)?),
                b"timeout" => spec.timeout_ms = number(value(&mut args, &key)?)?,
                b"counters" => spec.counters = number::<u8>(value(&mut args, &key)?)? != 0,
                b"thp" => {
                    let word = value(&mut args, &key)?.to_string_lossy().into_owned();
                    spec.thp = Thp::parse(&word).ok_or_else(|| SpecError(format!("thp `{word}`?")))?;
                }
                b"env" => {
                    let name = value(&mut args, &key)?;
                    let content = value(&mut args, &name)?;
                    spec.environment.push((name, content));
                }
                b"--" => break,
                _ => return Err(SpecError(format!("unexpected word {}", key.to_string_lossy()))),
            }
        }
        spec.command = args.collect();
        if spec.command.is_empty() {
            return Err(SpecError("no command".into()));
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_the_argument_list() {
        let spec = Spec {
            command: vec!["gawk".into(), "--".into(), OsString::from_vec(vec![0xff, b'x'])],
            environment: vec![("LD_PRELOAD".into(), "/a b/c.so".into()), ("env".into(), "".into())],
            timeout_ms: 1500,
            thp: Thp::Never,
            counters: true,
            report_fd: 7,
            cpu: Some(3),
            slice_us: 30_000,
            gate_fd: Some(9),
            refill: true,
            refill_by_loop: true,
            fixed_addresses: true,
            measured_only: vec!["HEAPTOLL_STATS".into()],
            parent: 4711,
        };
        assert_eq!(Spec::from_args(spec.to_args()), Ok(spec));
    }

    #[test]
    fn nonsense_is_refused() {
        for args in
            [vec![], vec!["--"], vec!["report"], vec!["report", "x", "--", "true"], vec!["what", "--"]]
        {
            assert!(Spec::from_args(args.iter().map(OsString::from)).is_err(), "{args:?}");
        }
    }
}
