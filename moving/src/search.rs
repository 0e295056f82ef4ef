//! The smallest heap in which a program fits, by bisection.

/// What is known of the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Pages of the largest heap that was seen not to suffice; 0 for none.
    pub too_small: u64,
    /// Pages of the smallest that was seen to suffice.
    pub fits: u64,
}

/// Finds the smallest number of pages that fits, to a share of `tolerance` of it, from a first guess. None when not even
/// `most` pages fit. What fits is taken to fit in every larger heap; a collector need not keep to that, by little.
///
/// # Errors
/// Those of `fits`.
pub fn smallest<E>(
    guess: u64,
    most: u64,
    tolerance: f64,
    mut fits: impl FnMut(u64) -> Result<bool, E>,
) -> Result<Option<Edge>, E> {
    let mut edge = Edge { too_small: 0, fits: guess.clamp(1, most) };
    while !fits(edge.fits)? {
        if edge.fits >= most {
            return Ok(None);
        }
        edge = Edge { too_small: edge.fits, fits: edge.fits.saturating_mul(2).min(most) };
    }
    while edge.fits - edge.too_small > ((edge.fits as f64 * tolerance) as u64).max(1) {
        let middle = edge.too_small.midpoint(edge.fits);
        if fits(middle)? {
            edge.fits = middle;
        } else {
            edge.too_small = middle;
        }
    }
    Ok(Some(edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(guess: u64, most: u64, truth: u64, tolerance: f64) -> (Option<Edge>, usize) {
        let mut tried = Vec::new();
        let edge = smallest(guess, most, tolerance, |pages| {
            tried.push(pages);
            Ok::<_, std::convert::Infallible>(pages >= truth)
        });
        (edge.unwrap_or(None), tried.len())
    }

    #[test]
    fn the_edge_is_found_from_below_and_from_above() {
        for guess in [1, 9, 1000, 5000] {
            let (edge, tries) = search(guess, 1 << 20, 777, 0.0);
            assert_eq!(edge, Some(Edge { too_small: 776, fits: 777 }), "from {guess}");
            assert!(tries < 30, "{tries}");
        }
    }

    #[test]
    fn an_answer_is_too_large_by_the_tolerance_at_most() {
        let (edge, tries) = search(100, 1 << 30, 123_456, 0.01);
        let fits = edge.map_or(0, |edge| edge.fits);
        assert!((123_456..=124_700).contains(&fits), "{fits}");
        assert!(tries < 20, "{tries}");
    }

    #[test]
    fn a_single_page_may_suffice_and_the_most_may_not() {
        assert_eq!(search(64, 1 << 20, 1, 0.01).0, Some(Edge { too_small: 0, fits: 1 }));
        assert_eq!(search(64, 1000, 1001, 0.01).0, None);
        assert_eq!(search(64, 1000, 1000, 0.0).0, Some(Edge { too_small: 999, fits: 1000 }));
    }
}
