//! One binary of all these tests: linking one takes the time of many tests.

mod bestfit;
mod boehm_collections;
mod boehm_versions;
mod buddy;
mod bump;
mod bw16;
mod bw26;
mod cartesian;
mod haertel;
mod kingsley;
mod kit;
mod knuth;
mod lea;
mod pow2;
mod quickfit;
mod treadmill;
