// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: factors every number of every question again.
use std::io::{self, Read};

fn narrow(mut x: u32, k: u32) -> bool {
    if x == 1 {
        return false;
    }
    let mut primes = Vec::new();
    let mut p = 2;
    while p * p <= x {
        while x % p == 0 {
            primes.push(p);
            x /= p;
        }
        p += 1;
    }
    if x > 1 {
        primes.push(x);
    }
    primes[primes.len() - 1] - primes[0] <= k
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u32>().unwrap());
    let q = it.next().unwrap();
    let k = it.next().unwrap();
    for _ in 0..q {
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        println!("{}", (l..=r).filter(|&x| narrow(x, k)).count());
    }
}
