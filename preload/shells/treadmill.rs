//! `libtreadmill.so`: see `heaptoll_historic::treadmill`.
#![no_std]

use heaptoll_historic::treadmill::Treadmill;
use heaptoll_roots::World;
use heaptoll_runtime::Shell;

static WORLD: World = World::new();

heaptoll_runtime::preload!(static SHELL: Shell<Treadmill> = Shell::new(Treadmill::of(&WORLD)));
heaptoll_roots::interpose_kernel_calls!();
