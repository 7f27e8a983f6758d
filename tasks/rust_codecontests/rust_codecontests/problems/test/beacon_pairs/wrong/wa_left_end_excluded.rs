// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: subtracts the count up to l instead of l - 1, so a usable second at l itself is lost.
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

fn count_up_to(n: u128, a: u128, b: u128, c: u128) -> u128 {
    let ab = lcm(a, b);
    let bc = lcm(b, c);
    let ac = lcm(a, c);
    let abc = lcm(ab, c);
    n / ab + n / bc + n / ac - 3 * (n / abc)
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut iter = input.split_whitespace().map(|x| x.parse::<u128>().unwrap());
    let q = iter.next().unwrap();
    for _ in 0..q {
        let a = iter.next().unwrap();
        let b = iter.next().unwrap();
        let c = iter.next().unwrap();
        let l = iter.next().unwrap();
        let r = iter.next().unwrap();
        println!("{}", count_up_to(r, a, b, c) - count_up_to(l, a, b, c));
    }
}
