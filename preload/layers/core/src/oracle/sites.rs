//! Which code the recorded allocations are called from, and whether the code that calls now is the same.
//!
//! An object file is loaded elsewhere in each run, so a site's address is found when it is first seen, and kept.

use core::cell::Cell;

use heaptoll_oracle_file::{NameWord, SiteWord};

/// Where an address lies, as the loader knows it.
pub trait Loaded {
    /// Calls `found` with the name of the object file that contains the address, the last component of its path,
    /// and with the address in the file; not, where no object file contains it.
    fn find(&self, address: usize, found: &mut dyn FnMut(&[u8], u64));
}

/// The tables of the file, and what was found.
pub struct Sites<'a, L> {
    /// The words of the section, little-endian.
    pub sites: &'a [u64],
    /// The words of the section.
    pub objects: &'a [u64],
    /// Names.
    pub text: &'a [u8],
    /// By site: its address in this run, 0 as long as it is not known.
    pub addresses: &'a [Cell<usize>],
    /// Who knows what is loaded.
    pub loaded: L,
}

impl<L: Loaded> Sites<'_, L> {
    /// Whether `caller` is known to be this site: it was found before.
    #[inline(always)]
    pub fn is_known(&self, site: usize, caller: usize) -> bool {
        self.addresses.get(site).is_some_and(|address| address.get() == caller && caller != 0)
    }

    /// Whether `caller`, the address of a call's last byte, is this site.
    #[inline(always)]
    pub fn is(&self, site: u32, caller: usize) -> bool {
        match self.addresses.get(site as usize) {
            Some(address) if address.get() == caller => true,
            _ => self.resolve(site, caller),
        }
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self, site: u32, caller: usize) -> bool {
        let Some((name, address)) = self.place(site) else {
            // Code of no file: its addresses mean nothing.
            return (site as usize) < self.sites.len();
        };
        let mut same = false;
        self.loaded.find(caller, &mut |object, found| same = object == name && found == address);
        if same && let Some(known) = self.addresses.get(site as usize) {
            known.set(caller);
        }
        same
    }

    /// A site's object file and the address in it; `None` for a site of no file, or where there is no such site.
    pub fn place(&self, site: u32) -> Option<(&[u8], u64)> {
        let site = SiteWord::of(*self.sites.get(site as usize)?);
        let name = NameWord::of(*self.objects.get(site.object? as usize)?);
        let start = name.start as usize;
        Some((self.text.get(start..start + name.length as usize)?, site.address))
    }
}

#[cfg(test)]
pub mod testing {
    use super::Loaded;

    /// `main` at 1000, `libc.so.6` at 5000, each of 1000 bytes.
    pub struct TwoObjects;

    impl Loaded for TwoObjects {
        fn find(&self, address: usize, found: &mut dyn FnMut(&[u8], u64)) {
            match address {
                1000..2000 => found(b"", address as u64 - 1000),
                5000..6000 => found(b"libc.so.6", address as u64 - 5000),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::TwoObjects;
    use super::*;

    #[test]
    fn a_site_is_its_object_and_its_address_in_it() {
        let site = |address, object| SiteWord { address, object }.word();
        let sites = [site(7, Some(0)), site(7, Some(1)), site(9, None)];
        let objects =
            [NameWord { start: 0, length: 0 }, NameWord { start: 1, length: 9 }].map(NameWord::word);
        let addresses = [const { Cell::new(0) }; 3];
        let sites = Sites {
            sites: &sites,
            objects: &objects,
            text: b"?libc.so.6",
            addresses: &addresses,
            loaded: TwoObjects,
        };
        assert!(sites.is(0, 1007) && sites.is(0, 1007) && sites.is(1, 5007));
        assert!(!sites.is(0, 5007) && !sites.is(1, 1007) && !sites.is(0, 1008) && !sites.is(0, 7));
        assert!(sites.is(2, 1), "code of no file is not compared");
        assert!(!sites.is(3, 1007), "there is no such site");
        assert_eq!(sites.place(1), Some((&b"libc.so.6"[..], 7)));
        assert_eq!(addresses[0].get(), 1007);
    }

    #[test]
    fn a_name_outside_of_the_text_is_no_site() {
        let objects = [NameWord { start: 4, length: 2 }.word()];
        let sites = [SiteWord { address: 0, object: Some(0) }.word()];
        let addresses = [const { Cell::new(0) }; 1];
        let sites = Sites {
            sites: &sites,
            objects: &objects,
            text: b"abcd",
            addresses: &addresses,
            loaded: TwoObjects,
        };
        assert_eq!(sites.place(0), None);
    }
}
