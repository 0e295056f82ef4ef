//! The order in which managers are listed: the product's, then the laboratory's. Others follow by alphabet.

const PRODUCT: [&str; 12] = [
    "tithe",
    "tithe-collect",
    "tithe-explicit",
    "tithe-guard",
    "mimalloc3",
    "mimalloc2",
    "jemalloc",
    "snmalloc",
    "tcmalloc",
    "rpmalloc",
    "bdw",
    "bdw-nofree",
];

/// What comes with the laboratory.
pub(super) const LABORATORY: [&str; 18] = [
    // The papers' collectors, then their allocators as the papers bring them up: Zorn 1992 §2.1 and §3, Detlefs 1994,
    // Boehm's slides.
    "bw16",
    "bw26",
    "treadmill",
    "knuth",
    "bestfit",
    "cartesian",
    "kingsley",
    "haertel",
    "buddy",
    "lea",
    "quickfit",
    "pow2",
    "bump",
    "jvm-serial",
    "jvm-parallel",
    "jvm-g1",
    "jvm-shenandoah",
    "jvm-zgc",
];

/// A manager's place in it.
pub(super) fn rank(name: &str) -> usize {
    let all = || PRODUCT.iter().chain(&LABORATORY);
    all().position(|known| *known == name).unwrap_or(all().count())
}
