// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

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
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u128>().unwrap());
    let q = it.next().unwrap();
    for _ in 0..q {
        let a = it.next().unwrap();
        let b = it.next().unwrap();
        let c = it.next().unwrap();
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        let ab = lcm(a, b);
        let count = |p: u128| r / p - (l - 1) / p;
        let all = count(lcm(ab, c));
        println!("{}", count(ab) + count(lcm(a, c)) + count(lcm(b, c)) - 3 * all);
    }
}
