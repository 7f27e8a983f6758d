// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
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

fn crews(counts: &[usize], ways: &[u64]) -> u64 {
    if counts.len() == 1 {
        return ways[counts[0]];
    }
    let (without, knowing) = counts.split_at(counts.len() / 2);
    let both: Vec<usize> = without.iter().zip(knowing).map(|(x, y)| x + y).collect();
    (crews(&both, ways) + 2 * P - crews(without, ways) - crews(knowing, ways)) % P
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<usize>().unwrap());
    let n = it.next().unwrap();
    let b = it.next().unwrap();
    let c = it.next().unwrap();
    let mut counts = vec![0usize; 1 << b];
    for x in it.take(n) {
        counts[x] += 1;
    }
    let mut ways = vec![0u64; n + 1];
    ways[c] = 1;
    for size in c + 1..=n {
        ways[size] = ways[size - 1] * size as u64 % P * power((size - c) as u64, P - 2) % P;
    }
    println!("{}", crews(&counts, &ways));
}
