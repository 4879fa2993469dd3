use proptest::prelude::*;

use super::*;
use crate::share::Portion;

fn share_of(profile: &Profile, spread: Spread, share: Share, seed: u64, requests: Option<u64>) -> Vec<Arrival> {
    Arrivals::new(profile.clone(), spread, share, seed, requests).collect()
}

/// The arrivals of all shares, in order.
fn all_of(profile: &Profile, spread: Spread, shares: u32, seed: u64, requests: Option<u64>) -> Vec<Arrival> {
    let mut arrivals: Vec<_> =
        Portion::whole(shares).shares().flat_map(|share| share_of(profile, spread, share, seed, requests)).collect();
    arrivals.sort_by_key(|arrival| (arrival.due_ns, arrival.index));
    arrivals
}

fn all(profile: &str, spread: Spread, shares: u32, seed: u64) -> Vec<Arrival> {
    all_of(&profile.parse().unwrap(), spread, shares, seed, None)
}

fn due(arrivals: &[Arrival]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.due_ns).collect()
}

fn seconds(arrivals: &[Arrival]) -> Vec<f64> {
    arrivals.iter().map(|arrival| arrival.due_ns as f64 / 1e9).collect()
}

fn whole(profile: Profile, spread: Spread, seed: u64, requests: Option<u64>) -> Arrivals {
    Arrivals::new(profile, spread, Share::WHOLE, seed, requests)
}

#[test]
fn uniform_arrivals_are_the_same_however_many_workers_share_them() {
    let one = all("100..300/2s,50/1s", Spread::Uniform, 1, 0);
    assert_eq!(one.len(), 450);
    assert_eq!(one, all("100..300/2s,50/1s", Spread::Uniform, 3, 0));
}

#[test]
fn a_constant_rate_never_drifts() {
    let mut arrivals = whole(Profile::constant(3.0).unwrap(), Spread::Uniform, 0, None);
    let day_ns = 86_400 * 1_000_000_000;
    assert_eq!(arrivals.pass(day_ns), 3 * 86_400);
    assert_eq!(arrivals.next().map(|a| a.due_ns), Some(day_ns));
}

#[test]
fn a_seed_repeats_its_arrivals() {
    assert_eq!(all("500/4s", Spread::Poisson, 2, 42), all("500/4s", Spread::Poisson, 2, 42));
    assert_ne!(all("500/4s", Spread::Poisson, 2, 42), all("500/4s", Spread::Poisson, 2, 43));
}

#[test]
fn requests_are_the_earliest_arrivals() {
    let profile: Profile = "1000/4s".parse().unwrap();
    for spread in [Spread::Uniform, Spread::Poisson] {
        let unlimited = all_of(&profile, spread, 1, 5, None);
        for requests in [1, 100, 256, 1000] {
            for shares in [1, 7] {
                let limited = all_of(&profile, spread, shares, 5, Some(requests));
                assert_eq!(due(&limited), due(&unlimited[..requests as usize]), "{spread:?}, {requests} over {shares}");
            }
        }
    }
}

#[test]
fn a_long_stretch_is_passed_at_once() {
    // An hour at the highest rate is 36,000,000,000 calls.
    let hour_ns = 3_600_000_000_000;
    let mut uniform = whole(Profile::constant(1e7).unwrap(), Spread::Uniform, 0, None);
    assert_eq!(uniform.pass(hour_ns), 36_000_000_000);
    assert_eq!(uniform.next(), Some(Arrival { due_ns: hour_ns, index: 36_000_000_000 }));
    // A tenth of a second is 1,000,000, within six standard deviations.
    let mut poisson = whole(Profile::constant(1e7).unwrap(), Spread::Poisson, 0, None);
    let passed = poisson.pass(100_000_000);
    assert!((994_000..1_006_000).contains(&passed), "{passed}");
    assert!(poisson.next().unwrap().due_ns >= 100_000_000);
}

/// One-sample Kolmogorov–Smirnov: the largest distance between the empirical distribution and `cdf`, against
/// the critical value 1.95/√n of α = 0.001 (Smirnov 1948).
fn kolmogorov_smirnov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample
        .iter()
        .enumerate()
        .map(|(i, &x)| (cdf(x) - i as f64 / n).abs().max((cdf(x) - (i + 1) as f64 / n).abs()))
        .fold(0.0, f64::max);
    assert!(distance < 1.95 / n.sqrt(), "distance {distance} over {n} values");
}

#[test]
fn poisson_gaps_over_all_workers_are_exponential() {
    let due = seconds(&all("2000/20s", Spread::Poisson, 4, 9));
    let gaps = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
    kolmogorov_smirnov(gaps, |gap| 1.0 - (-2000.0 * gap).exp());
}

#[test]
fn poisson_arrivals_follow_a_ramp() {
    // On a ramp from 0 the arrival times are distributed as the square of time.
    let due = seconds(&all("0..4000/10s", Spread::Poisson, 3, 5));
    kolmogorov_smirnov(due, |t| (t / 10.0).powi(2));
}

/// Counts of a Poisson process have their mean as variance over intervals of any length: shorter than a block, as long,
/// longer, and across the borders of blocks.
#[test]
fn poisson_counts_vary_as_much_as_their_mean() {
    let due = seconds(&all("1000/400s", Spread::Poisson, 2, 17));
    for length in [0.01, 0.1, 0.256, 0.4, 1.0] {
        let mut counts = vec![0.0; (400.0_f64 / length) as usize];
        for t in &due {
            if let Some(count) = counts.get_mut((t / length) as usize) {
                *count += 1.0;
            }
        }
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let dispersion = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0) / mean;
        // The index of dispersion of n Poisson counts has a standard error of about √(2/n) (Fisher's dispersion test).
        assert!((dispersion - 1.0).abs() < 4.0 * (2.0 / n).sqrt(), "{length} s: {dispersion} over {n} counts");
    }
}

/// What a gap is says nothing of the next.
#[test]
fn poisson_gaps_do_not_depend_on_each_other() {
    let due = seconds(&all("1000/100s", Spread::Poisson, 1, 23));
    let gaps: Vec<_> = due.windows(2).map(|pair| (pair[1] - pair[0]) * 1000.0).collect();
    for lag in [1, 2, 255, 256] {
        let products: Vec<_> = gaps.windows(lag + 1).map(|gaps| (gaps[0] - 1.0) * (gaps[lag] - 1.0)).collect();
        let correlation = products.iter().sum::<f64>() / products.len() as f64;
        assert!(correlation.abs() < 4.0 / (products.len() as f64).sqrt(), "lag {lag}: {correlation}");
    }
}

/// One worker's part of a process: its gaps are those of a process at its share of the rate, but for being dealt out
/// evenly within a block.
#[test]
fn a_worker_is_given_arrivals_all_the_time() {
    let profile = Profile::constant(1000.0).unwrap();
    for share in Portion::whole(4).shares() {
        let mut arrivals = Arrivals::new(profile.clone(), Spread::Poisson, share, 3, None);
        for second in 1..100_u64 {
            let count = arrivals.pass(second * 1_000_000_000);
            assert!((160..=340).contains(&count), "{count} calls of 250 in second {second}");
        }
    }
}

/// Ramps and holds, some of them pauses, of a length that one can wait for in a test.
fn profiles() -> impl Strategy<Value = Profile> {
    use crate::profile::Segment;
    let rate = prop_oneof![1 => Just(0_u32), 4 => 0_u32..3000];
    let segment = (rate.clone(), rate, any::<bool>(), 1_u32..20).prop_map(|(from, to, hold, tenths)| Segment {
        from: f64::from(from),
        to: f64::from(if hold { from } else { to }),
        seconds: f64::from(tenths) / 10.0,
    });
    prop::collection::vec(segment, 1..5).prop_filter_map("never due", |segments| Profile::new(segments).ok())
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop_oneof![Just(Spread::Uniform), Just(Spread::Poisson)]
}

proptest! {
    #[test]
    fn the_union_is_the_same_over_any_number_of_shares(
        profile in profiles(), spread in spreads(), seed: u64, requests in prop::option::of(1_u64..5000),
    ) {
        let one = all_of(&profile, spread, 1, seed, requests);
        for shares in [2, 7, 20] {
            let many = all_of(&profile, spread, shares, seed, requests);
            prop_assert_eq!(due(&one), due(&many), "{} shares", shares);
            let mut indices: Vec<_> = many.iter().map(|arrival| arrival.index).collect();
            indices.sort_unstable();
            prop_assert!(indices.into_iter().eq(0..one.len() as u64), "{} shares", shares);
        }
    }

    #[test]
    fn arrivals_of_a_share_grow(profile in profiles(), spread in spreads(), seed: u64, shares in 1_u32..9) {
        for share in Portion::whole(shares).shares() {
            let own = share_of(&profile, spread, share, seed, None);
            prop_assert!(own.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns && pair[0].index < pair[1].index));
            prop_assert!(own.iter().all(|arrival| arrival.due_ns <= profile.duration_ns().unwrap()));
        }
    }

    #[test]
    fn their_count_is_the_integral(profile in profiles(), seed: u64, shares in 1_u32..5) {
        let expected = profile.calls();
        let uniform = all_of(&profile, Spread::Uniform, shares, seed, None);
        prop_assert!((uniform.len() as f64 - expected).abs() <= 1.0, "{} of {expected}", uniform.len());
        let poisson = all_of(&profile, Spread::Poisson, shares, seed, None);
        // Six standard deviations of a Poisson count.
        prop_assert!((poisson.len() as f64 - expected).abs() <= 6.0 * expected.sqrt() + 6.0);
    }

    /// Passing and walking come to the same.
    #[test]
    fn passing_counts_what_walking_meets(
        profile in profiles(), spread in spreads(), seed: u64, shares in 1_u32..9,
        requests in prop::option::of(1_u64..3000), stops in prop::collection::vec((0_u64..9_000_000_000, 0_usize..600), 1..12),
    ) {
        let mut stops = stops;
        stops.sort_unstable();
        for share in Portion::whole(shares).shares() {
            let walked = share_of(&profile, spread, share, seed, requests);
            let mut arrivals = Arrivals::new(profile.clone(), spread, share, seed, requests);
            let mut at = 0;
            for &(until_ns, taken) in &stops {
                let met = walked[at..].iter().take_while(|arrival| arrival.due_ns < until_ns).count();
                prop_assert_eq!(arrivals.pass(until_ns), met as u64);
                at += met;
                for _ in 0..taken {
                    prop_assert_eq!(arrivals.next(), walked.get(at).copied());
                    at = (at + 1).min(walked.len());
                }
            }
            prop_assert_eq!(arrivals.next(), walked.get(at).copied());
        }
    }
}
