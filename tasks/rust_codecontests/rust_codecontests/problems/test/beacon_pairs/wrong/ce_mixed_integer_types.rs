// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: passes u64 values to a function of u128 without a cast, so it does not compile.
use std::io::{self, Read};

fn lcm(a: u128, b: u128) -> u128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        let t = x % y;
        x = y;
        y = t;
    }
    a / x * b
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<u64>().unwrap());
    let q = it.next().unwrap();
    for _ in 0..q {
        let a = it.next().unwrap();
        let b = it.next().unwrap();
        let c = it.next().unwrap();
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        let count = |p: u128| r / p - (l - 1) / p;
        let pairs = count(lcm(a, b)) + count(lcm(a, c)) + count(lcm(b, c));
        println!("{}", pairs - 3 * count(lcm(lcm(a, b), c)));
    }
}
