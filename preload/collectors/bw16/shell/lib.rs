//! `libbw16.so`: see `heaptoll_bw16`.
#![no_std]

use heaptoll_boehm::Boehm;
use heaptoll_floor::Shell;
use heaptoll_roots::World;

static WORLD: World = World::new();

heaptoll_floor::preload!(static SHELL: Shell<heaptoll_bw16::Bw16> = Shell::new(Boehm::of(&WORLD)));
