// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn below(end: u64) -> u64 {
    let mut total = end / 2;
    if end % 2 == 1 && (end - 1).count_ones() % 2 == 1 {
        total += 1;
    }
    total
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let q = it.next().unwrap();
    let mut out = String::new();
    for _ in 0..q {
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        let k = it.next().unwrap();
        let step = 1u64 << k;
        let first = (l + step - 1) / step;
        let last = r / step;
        out.push_str(&format!("{}\n", below(last + 1) - below(first)));
    }
    print!("{}", out);
}
