//! `dcw` in floating point: the authors' procedure (see `c/detect/dcw.h`), on whole series.

/// Daubechies, "Ten lectures on wavelets", 1992, Table 6.1, N = 6.
const TAPS: [f64; 12] = [
    0.11154074335008017,
    0.4946238903983854,
    0.7511339080215775,
    0.3152503517092432,
    -0.22626469396516913,
    -0.12976686756709563,
    0.09750160558707936,
    0.02752286553001629,
    -0.031582039318031156,
    0.0005538422009938016,
    0.004777257511010651,
    -0.00107730108499558,
];

/// Low-pass and high-pass filter of the inverse; those of the transform are reversed.
fn filters() -> [Vec<f64>; 2] {
    let high = (0..12).map(|j| if j % 2 == 0 { TAPS[11 - j] } else { -TAPS[11 - j] });
    [TAPS.to_vec(), high.collect()]
}

fn convolve(x: &[f64], filter: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; x.len() + filter.len() - 1];
    for (i, x) in x.iter().enumerate() {
        for (j, tap) in filter.iter().enumerate() {
            sums[i + j] += x * tap;
        }
    }
    sums
}

/// A level of the transform: approximation and details.
pub fn split(x: &[f64]) -> [Vec<f64>; 2] {
    let mut mirrored: Vec<f64> = x[..11].iter().rev().copied().collect();
    mirrored.extend(x);
    mirrored.extend(x[x.len() - 11..].iter().rev());
    filters().map(|filter| {
        let filter: Vec<f64> = filter.into_iter().rev().collect();
        // The middle of len + 11 sums, then every second.
        let sums = convolve(&mirrored, &filter);
        sums[11..x.len() + 22].iter().skip(1).step_by(2).copied().collect()
    })
}

/// Its inverse, of `len` values.
pub fn join(halves: &[Vec<f64>; 2], len: usize) -> Vec<f64> {
    let [low, high] = filters();
    let spread = |half: &[f64]| half.iter().flat_map(|x| [0.0, *x]).collect::<Vec<_>>();
    let low = convolve(&spread(&halves[0]), &low);
    let high = convolve(&spread(&halves[1]), &high);
    low.iter().zip(high).skip(11).take(len).map(|(low, high)| low + high).collect()
}

/// Without noise.
pub fn restore(x: &[f64]) -> Vec<f64> {
    let n = x.len() as f64;
    let levels = ((n.log2() - n.ln().log2()).floor() as usize).min(4);
    let mut halves = Vec::new();
    let mut from = x.to_vec();
    for _ in 0..levels {
        let [rough, detail] = split(&from);
        halves.push((from.len(), detail));
        from = rough;
    }
    let all = x.len() + halves.iter().map(|(_, detail)| detail.len()).sum::<usize>();
    let t = 0.3936 + 0.1829 * (all as f64).log2();
    for (len, detail) in halves.into_iter().rev() {
        let mut sizes: Vec<f64> = detail.iter().map(|x| x.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let median = (sizes[(sizes.len() - 1) / 2] + sizes[sizes.len() / 2]) / 2.0;
        let limit = t * median / 0.6745;
        let detail = detail.iter().map(|x| x.signum() * (x.abs() - limit).max(0.0)).collect();
        from = join(&[from, detail], len);
    }
    from
}

/// The correlation of two series of one length, without noise; 0 if one is constant.
pub fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let centred = |x: &[f64]| {
        let x = restore(x);
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        x.into_iter().map(|x| x - mean).collect::<Vec<_>>()
    };
    let (a, b) = (centred(a), centred(b));
    let of = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (aa, bb) = (of(&a, &a), of(&b, &b));
    if aa.min(bb) < 1e-15 { 0.0 } else { of(&a, &b) / (aa * bb).sqrt() }
}
