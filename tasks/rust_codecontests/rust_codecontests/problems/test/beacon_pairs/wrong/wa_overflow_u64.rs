// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: the least common multiple of three periods near 10^9 does not fit into 64 bits.
use std::io::{self, Read};

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    a / gcd(a, b) * b
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let q = it.next().unwrap();
    for _ in 0..q {
        let a = it.next().unwrap();
        let b = it.next().unwrap();
        let c = it.next().unwrap();
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        let count = |p: u64| {
            if p == 0 {
                0
            } else {
                (r / p - (l - 1) / p) as i64
            }
        };
        let all = count(lcm(lcm(a, b), c));
        let ans = count(lcm(a, b)) + count(lcm(a, c)) + count(lcm(b, c)) - 3 * all;
        println!("{}", ans);
    }
}
