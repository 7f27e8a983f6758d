// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: takes m - 1 as the size of the group, which is true for a prime m only.
use std::io::{self, Read};

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn power(a: u128, mut e: u128, m: u128) -> u128 {
    let mut base = a % m;
    let mut r = 1 % m;
    while e > 0 {
        if e % 2 == 1 {
            r = r * base % m;
        }
        base = base * base % m;
        e /= 2;
    }
    r
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u128> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    for pair in v[1..].chunks(2) {
        let (a, m) = (pair[0], pair[1]);
        if gcd(a, m) != 1 {
            println!("0");
            continue;
        }
        let mut best = (m - 1).max(1);
        let mut d = 1u64;
        while (d as u128) * (d as u128) < m {
            if (m - 1) as u64 % d == 0 {
                for e in [d as u128, (m - 1) / d as u128] {
                    let x = power(a, e, m);
                    if e > 0 && e < best && (x == 1 % m || x == m - 1) {
                        best = e;
                    }
                }
            }
            d += 1;
        }
        println!("{}", best);
    }
}
