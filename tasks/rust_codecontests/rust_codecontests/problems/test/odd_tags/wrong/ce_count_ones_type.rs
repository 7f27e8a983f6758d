// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: adds the u32 of count_ones to a u64 without a cast, so it does not compile.
use std::io::{self, Read};

fn below(end: u64) -> u64 {
    if end % 2 == 0 {
        end / 2
    } else {
        end / 2 + (end - 1).count_ones() % 2
    }
}

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
        println!("{}", below(r / step + 1) - below(first));
    }
}
