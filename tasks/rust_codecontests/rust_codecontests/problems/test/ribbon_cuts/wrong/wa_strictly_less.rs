// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: numbers equal to K are refused.
use std::io::{self, Read};

const MOD: u64 = 1_000_000_007;

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut it = text.split_whitespace();
    let k: u64 = it.next().unwrap().parse().unwrap();
    let s = it.next().unwrap().as_bytes();
    let n = s.len();
    // ways[i][p]: cuts of the first i digits whose last piece has parity p
    let mut ways = vec![[0u64; 2]; n + 1];
    for start in 0..n {
        let before = ways[start];
        let mut value: u64 = 0;
        for end in start..n {
            if end > start && s[start] == b'0' {
                break;
            }
            value = value * 10 + (s[end] - b'0') as u64;
            if value >= k {
                break;
            }
            let p = (value % 2) as usize;
            let add = if start == 0 { 1 } else { before[1 - p] };
            ways[end + 1][p] = (ways[end + 1][p] + add) % MOD;
        }
    }
    println!("{}", (ways[n][0] + ways[n][1]) % MOD);
}
