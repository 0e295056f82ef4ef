//! `libbw26.so`: see `heaptoll_historic::boehm::bw26`.
#![no_std]

use heaptoll_historic::boehm::{Boehm, bw26::Bw26};
use heaptoll_roots::World;
use heaptoll_runtime::Shell;

static WORLD: World = World::new();

heaptoll_runtime::preload!(static SHELL: Shell<Bw26> = Shell::new(Boehm::of(&WORLD)));
heaptoll_roots::interpose_kernel_calls!();
