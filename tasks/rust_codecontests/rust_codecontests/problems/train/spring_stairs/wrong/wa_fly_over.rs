// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a jump may not pass over a broken step either.
use std::io::{self, Read};

const MOD: u64 = 1_000_000_007;

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut it = text.split_whitespace().map(|x| x.parse::<usize>().unwrap());
    let n = it.next().unwrap();
    let k = it.next().unwrap();
    let m = it.next().unwrap();
    let mut broken = vec![false; n + 1];
    for _ in 0..m {
        broken[it.next().unwrap()] = true;
    }
    // ways[i][l]: climbs to step i whose last jump has length l
    let mut ways = vec![vec![0u64; k + 1]; n + 1];
    let mut total = vec![0u64; n + 1];
    total[0] = 1;
    for i in 1..=n {
        if broken[i] {
            continue;
        }
        for l in 1..=k.min(i) {
            if broken[i - l] {
                break;
            }
            ways[i][l] = (total[i - l] + MOD - ways[i - l][l]) % MOD;
            total[i] += ways[i][l];
        }
        total[i] %= MOD;
    }
    println!("{}", total[n]);
}
