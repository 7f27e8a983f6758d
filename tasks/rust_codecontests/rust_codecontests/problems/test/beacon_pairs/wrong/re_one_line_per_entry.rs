// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: expects every entry on a line of its own, but line ends may stand anywhere.
use std::io::{self, BufRead};

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn lcm(a: u128, b: u128) -> u128 {
    a / gcd(a, b) * b
}

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines();
    let q: usize = lines.next().unwrap().unwrap().trim().parse().unwrap();
    for _ in 0..q {
        let line = lines.next().unwrap().unwrap();
        let v: Vec<u128> = line.split_whitespace().map(|x| x.parse().unwrap()).collect();
        let (a, b, c, l, r) = (v[0], v[1], v[2], v[3], v[4]);
        let count = |p: u128| r / p - (l - 1) / p;
        let pairs = count(lcm(a, b)) + count(lcm(a, c)) + count(lcm(b, c));
        println!("{}", pairs - 3 * count(lcm(lcm(a, b), c)));
    }
}
