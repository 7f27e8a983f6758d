// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufWriter, Read, Write};

const LIMIT: u64 = 1_000_000_000_000_000_000;

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        let t = a % b;
        a = b;
        b = t;
    }
    a
}

fn lcm(a: u64, b: u64) -> u64 {
    match (a / gcd(a, b)).checked_mul(b) {
        Some(v) if v <= LIMIT => v,
        _ => LIMIT + 1,
    }
}

fn upto(n: u64, p: [u64; 3]) -> u64 {
    let x = lcm(p[0], p[1]);
    let y = lcm(p[0], p[2]);
    let z = lcm(p[1], p[2]);
    let all = if x > LIMIT { x } else { lcm(x, p[2]) };
    n / x + n / y + n / z - 3 * (n / all)
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<u64> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let mut out = BufWriter::new(io::stdout());
    for e in nums[1..].chunks(5).take(nums[0] as usize) {
        let p = [e[0], e[1], e[2]];
        writeln!(out, "{}", upto(e[4], p) - upto(e[3] - 1, p)).unwrap();
    }
}
