// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::*;

fn vanish(
    l: usize,
    r: usize,
    a: &[i64],
    d: i64,
    memo: &mut Vec<Vec<Option<Option<i64>>>>,
) -> Option<i64> {
    if l == r {
        return Some(0);
    }
    if let Some(known) = memo[l][r] {
        return known;
    }
    let mut best = None;
    for p in (l + 1..r).step_by(2) {
        if (a[l] - a[p]).abs() > d {
            continue;
        }
        if let Some(x) = vanish(l + 1, p, a, d, memo) {
            if let Some(y) = vanish(p + 1, r, a, d, memo) {
                best = best.max(Some(x + y + a[l] * a[p]));
            }
        }
    }
    memo[l][r] = Some(best);
    best
}

fn main() {
    let mut s = String::new();
    stdin().read_to_string(&mut s).unwrap();
    let v: Vec<i64> = s.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let a = &v[2..2 + n];
    let mut memo = vec![vec![None; n + 1]; n + 1];
    let mut best = vec![0i64; n + 1];
    for l in (0..n).rev() {
        best[l] = best[l + 1];
        for r in (l + 2..=n).step_by(2) {
            if let Some(x) = vanish(l, r, a, v[1], &mut memo) {
                best[l] = best[l].max(x + best[r]);
            }
        }
    }
    println!("{}", best[0]);
}
