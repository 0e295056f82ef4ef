//! Objects by call stack, as a profile: what a flame graph shows.

use heaptoll_profiles::{self as profiles, Builder, Frame, Measure, Phase, Profile};

use crate::drag::Drag;
use crate::group::Group;
use crate::stamp::Clock;

/// What the bytes times a clock are divided by, so that those of a long run have 64 bits.
const THOUSAND: u128 = 1000;
const KIB: u128 = 1024;

/// What a stack has a value of, in this order.
fn measures(clock: Clock) -> Vec<Measure> {
    let clock = match clock {
        Clock::Instructions => profiles::Clock::Instructions,
        Clock::Bytes => profiles::Clock::Bytes,
    };
    let phases = [Phase::Drag, Phase::Void, Phase::Lag, Phase::Use].map(|phase| Measure::Space(phase, clock));
    let sums = [
        Measure::AllocatedObjects,
        Measure::AllocatedBytes,
        Measure::UntouchedObjects,
        Measure::UntouchedBytes,
        Measure::EndObjects,
        Measure::EndBytes,
    ];
    phases.into_iter().chain(sums).collect()
}

fn values(group: &Group, clock: Clock) -> [u64; 10] {
    let part = match clock {
        Clock::Instructions => THOUSAND,
        Clock::Bytes => KIB,
    };
    let rounded = |space: u128| u64::try_from(space.saturating_add(part / 2) / part).unwrap_or(u64::MAX);
    let space = group.spaces.on(clock);
    [
        rounded(space.drag),
        rounded(space.void),
        rounded(space.lag),
        rounded(space.in_use),
        group.all.objects,
        group.all.bytes,
        group.void.objects,
        group.void.bytes,
        group.kept.objects,
        group.kept.bytes,
    ]
}

impl Drag {
    /// The objects by call stack, when all of them have ended. Space is rounded to bytes times 1000 instructions, or to
    /// bytes times KiB allocated. The tracer recorded `depth` frames of a stack at most.
    pub(crate) fn stacks(&self, clock: Clock, depth: usize) -> Profile {
        let mut builder = Builder::new(measures(clock));
        let groups = self.groups.sites.iter().enumerate().filter(|(_, group)| group.all.objects > 0);
        for (site, group) in groups {
            let frames: Vec<u32> =
                self.sites.stack(site as u32, depth).into_iter().map(|frame| builder.frame(frame)).collect();
            builder.stack(&frames, &values(group, clock));
        }
        if self.groups.others.all.objects > 0 {
            let others = Frame { function: "[further call stacks]".into(), ..Frame::default() };
            let others = builder.frame(others);
            builder.stack(&[others], &values(&self.groups.others, clock));
        }
        builder.finish()
    }
}
