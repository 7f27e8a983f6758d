// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: goes over the columns one by one, linear in W.
use std::io;

const M: u64 = 1_000_000_007;

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let v: Vec<u64> = line
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let (h, w, k) = (v[0], v[1], v[2] as u32);
    let states: Vec<u32> = (0..(1 << h)).filter(|&s: &u32| s & (s >> 1) == 0).collect();
    let n = states.len();
    let ok = |a: u32, b: u32| a != b && (a & b).count_ones() <= k;
    let mut total = 0u64;
    for first in 0..n {
        let mut dp = vec![0u64; n];
        dp[first] = 1;
        for _ in 1..w {
            let mut next = vec![0u64; n];
            for i in 0..n {
                for j in 0..n {
                    if ok(states[i], states[j]) {
                        next[j] = (next[j] + dp[i]) % M;
                    }
                }
            }
            dp = next;
        }
        for i in 0..n {
            if ok(states[i], states[first]) {
                total = (total + dp[i]) % M;
            }
        }
    }
    println!("{}", total);
}
