//! `libbw16.so`: see `heaptoll_historic::boehm::bw16`.
#![no_std]

use heaptoll_historic::boehm::{Boehm, bw16::Bw16};
use heaptoll_roots::World;
use heaptoll_runtime::Shell;

static WORLD: World = World::new();

heaptoll_runtime::preload!(static SHELL: Shell<Bw16> = Shell::new(Boehm::of(&WORLD)));
heaptoll_roots::interpose_kernel_calls!();
