// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::*;

fn least(mask: usize, t: &[i64], e: &[Vec<i64>], memo: &mut [Option<i64>]) -> i64 {
    if mask == 0 {
        return 0;
    }
    if let Some(known) = memo[mask] {
        return known;
    }
    let n = t.len();
    let mut best = i64::MAX;
    for last in (0..n).filter(|&i| mask & (1 << i) != 0) {
        let rest = mask & !(1 << last);
        let effect: i64 = (0..n)
            .filter(|&j| rest & (1 << j) != 0)
            .map(|j| e[j][last])
            .sum();
        best = best.min(least(rest, t, e, memo) + (t[last] + effect).max(1));
    }
    memo[mask] = Some(best);
    best
}

fn main() {
    let mut s = String::new();
    stdin().read_to_string(&mut s).unwrap();
    let v: Vec<i64> = s.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let t = v[2..2 + n].to_vec();
    let e: Vec<Vec<i64>> = v[2 + n..].chunks(n).map(|c| c.to_vec()).collect();
    let mut memo = vec![None; 1 << n];
    let mut ans = i64::MAX;
    for mask in 0..1usize << n {
        if mask.count_ones() as i64 == v[1] {
            ans = ans.min(least(mask, &t, &e, &mut memo));
        }
    }
    println!("{}", ans);
}
