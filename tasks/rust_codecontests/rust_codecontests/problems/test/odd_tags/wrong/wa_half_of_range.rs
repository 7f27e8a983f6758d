// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: assumes that exactly half of the liftable numbers are lit, rounded down.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let q = it.next().unwrap();
    for _ in 0..q {
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        let k = it.next().unwrap();
        let step = 1u64 << k;
        let first = (l + step - 1) / step;
        let last = r / step;
        let count = if last >= first { last - first + 1 } else { 0 };
        println!("{}", count / 2);
    }
}
