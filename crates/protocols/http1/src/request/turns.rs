//! Lines that take turns by their weights.

/// The most turns of all lines together.
const MOST_TURNS: u64 = 10_000_000;

/// The line of each turn: each as often as its weight, evenly over all turns. Empty where all weights are equal.
pub(super) fn turns(weights: &[u32]) -> Result<Vec<u32>, String> {
    if weights.windows(2).all(|pair| matches!(pair, [a, b] if a == b)) {
        return Ok(Vec::new());
    }
    let all: u64 = weights.iter().copied().map(u64::from).sum();
    if all > MOST_TURNS {
        return Err(format!("the weights of all lines are {all} together, and may be {MOST_TURNS}: give smaller ones"));
    }
    let of_line = |(line, weight): (u32, u32)| {
        // The middle of each of as many equal parts as its weight.
        (0..weight).map(move |nth| ((f64::from(nth) + 0.5) / f64::from(weight), line))
    };
    let mut turns: Vec<_> = (0..).zip(weights.iter().copied()).flat_map(of_line).collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(turns.into_iter().map(|(_, line)| line).collect())
}
