//! Settings that no other beats in CPU and memory, and when one such curve lies below another.

/// The cost of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The setting, as text.
    pub setting: String,
    /// Peak RSS, MiB.
    pub memory_mib: f64,
    /// CPU over the baseline's.
    pub cpu: f64,
}

/// One of their points and what ours costs there.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedPoint {
    /// Their setting.
    pub setting: String,
    /// Their CPU.
    pub theirs: f64,
    /// Ours at no more memory; none where ours needs more memory.
    pub ours: Option<f64>,
}

impl MatchedPoint {
    /// Whether ours is cheaper there.
    pub fn is_below(&self) -> bool {
        self.ours.is_some_and(|ours| ours < self.theirs)
    }
}

/// The settings that no other beats in both, by memory.
fn frontier(costs: &[Cost]) -> Vec<&Cost> {
    let mut sorted: Vec<&Cost> = costs.iter().collect();
    sorted.sort_by(|a, b| a.memory_mib.total_cmp(&b.memory_mib).then(a.cpu.total_cmp(&b.cpu)));
    let mut least = f64::INFINITY;
    sorted.retain(|cost| {
        let better = cost.cpu < least;
        least = least.min(cost.cpu);
        better
    });
    sorted
}

/// The CPU of a frontier at a memory: between two of its settings on the straight line through them, since a setting
/// between them can be had; beyond its last that one's, since it needs less; none before its first.
fn at(frontier: &[&Cost], memory_mib: f64) -> Option<f64> {
    let after = frontier.iter().position(|cost| cost.memory_mib > memory_mib);
    match after {
        Some(0) => None,
        None => Some(frontier.last()?.cpu),
        Some(index) => {
            let (a, b) = (frontier[index - 1], frontier[index]);
            let share = (memory_mib - a.memory_mib) / (b.memory_mib - a.memory_mib);
            Some(a.cpu + (b.cpu - a.cpu) * share)
        }
    }
}

/// Ours at each of their settings.
pub fn hold(ours: &[Cost], theirs: &[Cost]) -> Vec<MatchedPoint> {
    let ours = frontier(ours);
    theirs
        .iter()
        .map(|cost| MatchedPoint {
            setting: cost.setting.clone(),
            theirs: cost.cpu,
            ours: at(&ours, cost.memory_mib),
        })
        .collect()
}

/// As a sentence: at how many of their settings ours is cheaper, and where it is not.
pub fn verdict(held: &[MatchedPoint], ours: &str, theirs: &str) -> String {
    let below = held.iter().filter(|one| one.is_below()).count();
    let mut text = format!("{ours} lies below {theirs} at {below} of {} heap sizes", held.len());
    let more_expensive: Vec<&str> = held
        .iter()
        .filter(|one| !one.is_below() && one.ours.is_some())
        .map(|one| one.setting.as_str())
        .collect();
    let smaller: Vec<&str> =
        held.iter().filter(|one| one.ours.is_none()).map(|one| one.setting.as_str()).collect();
    if !more_expensive.is_empty() {
        text.push_str(&format!("; it takes more CPU at {}", more_expensive.join(", ")));
    }
    if !smaller.is_empty() {
        text.push_str(&format!(
            "; {theirs} takes less memory than {ours} ever does at {}",
            smaller.join(", ")
        ));
    }
    let factors: Vec<f64> = held.iter().filter_map(|one| Some(one.ours? / one.theirs)).collect();
    if let Some(mean) = heaptoll_statistics::geometric_mean(factors) {
        text.push_str(&format!("; CPU at equal memory {mean:.2}x"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(memory_mib: f64, cpu: f64) -> Cost {
        Cost { setting: format!("{memory_mib}"), memory_mib, cpu }
    }

    #[test]
    fn what_another_setting_beats_is_not_on_the_frontier() {
        let costs = [cost(30.0, 1.0), cost(10.0, 3.0), cost(20.0, 3.5), cost(20.0, 2.0)];
        let kept: Vec<f64> = frontier(&costs).iter().map(|cost| cost.cpu).collect();
        assert_eq!(kept, [3.0, 2.0, 1.0]);
    }

    #[test]
    fn ours_is_read_at_their_memory() {
        let ours = [cost(10.0, 3.0), cost(20.0, 2.0)];
        let theirs = [cost(5.0, 9.0), cost(15.0, 2.6), cost(20.0, 1.9), cost(90.0, 2.1)];
        let held = hold(&ours, &theirs);
        let read: Vec<Option<f64>> = held.iter().map(|one| one.ours).collect();
        assert_eq!(read, [None, Some(2.5), Some(2.0), Some(2.0)]);
        assert_eq!(held.iter().map(MatchedPoint::is_below).collect::<Vec<_>>(), [false, true, false, true]);
        let text = verdict(&held, "ours", "theirs");
        assert!(
            text.starts_with("ours lies below theirs at 2 of 4 heap sizes; it takes more CPU at 20"),
            "{text}"
        );
        assert!(text.contains("less memory than ours ever does at 5"), "{text}");
    }

    #[test]
    fn a_frontier_of_nothing_is_nowhere() {
        assert_eq!(at(&[], 1.0), None);
    }
}
