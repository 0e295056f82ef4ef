//! Whether a traced run saw every call of a program's own allocator. What was inlined, optimised away with its callers or
//! stripped is not there to be followed, and half of the calls is no figure.

use heaptoll_reftrace_host::allocator_symbols::Table;
use heaptoll_reftrace_host::{FamilyCalls, Traced, TracedImage};
use heaptoll_units::whole_bytes;

use super::own::Follow;

/// A block in so many that was not seen to be made is no inlined routine: one made by a thread that was killed.
const FEW: u64 = 1000;
/// Bytes that a program maps without an allocator: a few buffers.
const SOME: u64 = 1 << 20;
/// The C library's own calls in a program whose routines are all inlined are fewer.
const HARDLY_ANY: u64 = 100;

/// Why the figures of a program's own allocator are not of all its calls, if they are not.
pub fn doubt<S>(follow: &Follow, traced: &Traced<S>) -> Option<String> {
    let own = follow.own.as_ref()?;
    // A child of fork frees blocks of its parent's; what did not begin as a program has no main.
    let of_programs =
        traced.images.iter().enumerate().filter(|(at, image)| *at == 0 || image.before_main.is_some());
    let doubt = of_programs.into_iter().find_map(|(_, image)| {
        inlined(&follow.table, image)
            .or_else(|| unknown(&follow.table, image))
            .or_else(|| reused(&follow.table, image))
    });
    let none = hardly_any(&own.name, traced).filter(|(calls, _)| *calls == 0).map(|(_, why)| why);
    doubt.or(none).map(|why| {
        format!(
            "{why}. Inlined or stripped routines cannot be followed, so there are no figures. Trace a build \
             with symbols and without link-time optimisation of the allocator, or name its routines with --allocator-symbols"
        )
    })
}

fn inlined<S>(table: &Table, image: &TracedImage<S>) -> Option<String> {
    let (family, objects) = image.inlined.first_key_value()?;
    let name = table.name(*family).unwrap_or("malloc");
    let object = objects.first().map(String::as_str).unwrap_or_default();
    Some(format!(
        "in {object} code that only routines of {name} call is called from elsewhere: some were inlined"
    ))
}

fn unknown<S>(table: &Table, image: &TracedImage<S>) -> Option<String> {
    let (family, calls) = image.families.iter().find(|(_, calls)| are_many(calls))?;
    let name = table.name(*family).unwrap_or("malloc");
    let FamilyCalls { frees, unknown, .. } = calls;
    Some(format!(
        "{unknown} calls of {name} in {} use a block of unknown origin ({frees} calls free one): some allocating \
         routines were not followed",
        image.image.name()
    ))
}

fn are_many(calls: &FamilyCalls) -> bool {
    calls.unknown > (calls.frees / FEW).max(2)
}

/// What is given again was freed.
fn reused<S>(table: &Table, image: &TracedImage<S>) -> Option<String> {
    let (family, calls) =
        image.families.iter().find(|(_, calls)| calls.reused > (calls.allocations / FEW).max(2))?;
    Some(format!(
        "{} of {} blocks that {} gave in {} were in use by its calls: some freeing routines were not followed",
        calls.reused,
        calls.allocations,
        table.name(*family).unwrap_or("malloc"),
        image.image.name()
    ))
}

/// Memory without calls that would fill it, and how many there are. Where there are some, an allocator that reserves its heap
/// may have taken it.
fn hardly_any<S>(name: &str, traced: &Traced<S>) -> Option<(u64, String)> {
    let main = traced.main()?;
    let sum = |of: fn(&FamilyCalls) -> u64| main.families.values().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|calls| calls.allocations), sum(|calls| calls.bytes));
    (calls < HARDLY_ANY && main.writable_bytes > SOME.max(bytes.saturating_mul(FEW))).then(|| {
        let why = format!(
            "all calls of {name} in {} ({calls}) request {}, and it took {} from the system",
            main.image.name(),
            whole_bytes(bytes),
            whole_bytes(main.writable_bytes)
        );
        (calls, why)
    })
}

/// A remark on calls that no manager served, in a run under one; in one under the program's own, on calls that it may lack.
pub fn bypassed<S>(follow: &Follow, traced: &Traced<S>) -> Vec<String> {
    if let Some(own) = &follow.own {
        let few = hardly_any(&own.name, traced);
        let remark = |(_, why)| format!("{why}: if routines of it were inlined, their calls are not counted");
        return few.map(remark).into_iter().collect();
    }
    let mut remarks = Vec::new();
    for image in &traced.images {
        let all: u64 = image.families.values().map(|calls| calls.allocations).sum();
        let others =
            image.families.iter().filter_map(|(family, calls)| Some((follow.table.name(*family)?, calls)));
        let mut sums: std::collections::BTreeMap<&str, u64> = Default::default();
        for (name, calls) in others {
            *sums.entry(name).or_default() += calls.allocations;
        }
        remarks.extend(sums.into_iter().filter(|(_, calls)| *calls > 0).map(|(name, calls)| {
            format!(
                "{}: {calls} of {all} allocating calls go to {name}, which is part of the program and which no \
                 manager replaces",
                image.image.name()
            )
        }));
        remarks.extend(inlined(&follow.table, image));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stray_block_is_none_and_a_thousandth_is_many() {
        let of = |frees, unknown| are_many(&FamilyCalls { frees, unknown, ..FamilyCalls::default() });
        assert!(!of(10, 2) && of(10, 3));
        assert!(!of(10_000, 10) && of(10_000, 11));
    }
}
