// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: asks only that each skill is known by a member, not that some member does not know it.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;

fn power(mut a: u64, mut e: u64) -> u64 {
    let mut r = 1;
    while e > 0 {
        if e & 1 == 1 {
            r = r * a % P;
        }
        a = a * a % P;
        e >>= 1;
    }
    r
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, b, c) = (v[0], v[1], v[2]);
    let mut ways = vec![0u64; n + 1];
    ways[c] = 1;
    for size in c + 1..=n {
        ways[size] = ways[size - 1] * size as u64 % P * power((size - c) as u64, P - 2) % P;
    }
    let mut answer = 0;
    for missing in 0..1usize << b {
        let count = v[3..3 + n].iter().filter(|&&x| x & missing == 0).count();
        if missing.count_ones() % 2 == 0 {
            answer = (answer + ways[count]) % P;
        } else {
            answer = (answer + P - ways[count]) % P;
        }
    }
    println!("{}", answer);
}
