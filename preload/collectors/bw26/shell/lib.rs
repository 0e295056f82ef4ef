//! `libbw26.so`: see `heaptoll_bw26`.
#![no_std]

use heaptoll_boehm::Boehm;
use heaptoll_floor::Shell;
use heaptoll_roots::World;

static WORLD: World = World::new();

heaptoll_floor::preload!(static SHELL: Shell<heaptoll_bw26::Bw26> = Shell::new(Boehm::of(&WORLD)));
