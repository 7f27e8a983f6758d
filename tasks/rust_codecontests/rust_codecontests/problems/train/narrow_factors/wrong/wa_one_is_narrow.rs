// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts the number 1, which has no prime divisor, as narrow.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<usize>().unwrap());
    let q = it.next().unwrap();
    let k = it.next().unwrap();
    let top = 500_000;
    let mut first = vec![0usize; top + 1];
    let mut last = vec![0usize; top + 1];
    for p in 2..=top {
        if first[p] == 0 {
            let mut x = p;
            while x <= top {
                if first[x] == 0 {
                    first[x] = p;
                }
                last[x] = p;
                x += p;
            }
        }
    }
    let mut sums = vec![0; top + 1];
    for x in 1..=top {
        sums[x] = sums[x - 1];
        if last[x] - first[x] <= k {
            sums[x] += 1;
        }
    }
    for _ in 0..q {
        let l = it.next().unwrap();
        let r = it.next().unwrap();
        println!("{}", sums[r] - sums[l - 1]);
    }
}
