//! Made-up figures of traced runs.

use heaptoll_experiment::observation::{ByOwner, ExactFigures, GeometryMisses, LocalityFigures};

use super::noise::Noise;

fn by_owner(noise: &mut Noise) -> ByOwner {
    let mut count = |most: f64| (noise.next() * most) as u64;
    ByOwner { program: count(1e10), allocator: count(1e9), collector: count(1e8) }
}

pub fn exact(noise: &mut Noise) -> ExactFigures {
    ExactFigures {
        instructions: by_owner(noise),
        loads: by_owner(noise),
        stores: by_owner(noise),
        allocations: (noise.next() * 1e7) as u64,
        frees: (noise.next() * 1e7) as u64,
        heap_high_water_bytes: Some((noise.next() * 1e8) as u64),
        images: 1,
        whole: true,
        startup: Some(by_owner(noise)),
    }
}

pub fn locality(noise: &mut Noise) -> LocalityFigures {
    LocalityFigures {
        references: by_owner(noise),
        line_bytes: 64,
        page_bytes: 4096,
        caches: vec![GeometryMisses {
            cache: "32K/8".into(),
            misses: by_owner(noise),
            wait_cycles: Some(14),
        }],
        pages_touched: (noise.next() * 1e5) as u64,
        sampled_one_in: 1,
    }
}
