// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn count(points: &[(usize, i64)], groups: usize, d: i64) -> i64 {
    let mut inside = vec![0i64; groups];
    let mut left = 0;
    let mut total = 0;
    for (right, &(g, x)) in points.iter().enumerate() {
        while x - points[left].1 > d {
            inside[points[left].0] -= 1;
            left += 1;
        }
        total += (right - left) as i64 - inside[g];
        inside[g] += 1;
    }
    total
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let k = v[1];
    let mut owners: Vec<i64> = v[2..].chunks(2).map(|c| c[1]).collect();
    owners.sort();
    owners.dedup();
    let mut points: Vec<(usize, i64)> = v[2..]
        .chunks(2)
        .map(|c| (owners.binary_search(&c[1]).unwrap(), c[0]))
        .collect();
    points.sort_by_key(|p| p.1);
    let (mut lo, mut hi) = (0i64, 3_000_000_001i64);
    while lo < hi {
        let mid = (lo + hi) / 2;
        if count(&points, owners.len(), mid) >= k {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    if lo > 3_000_000_000 {
        println!("-1");
    } else {
        println!("{}", lo);
    }
}
