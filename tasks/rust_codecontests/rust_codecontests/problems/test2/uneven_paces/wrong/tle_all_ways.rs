// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: follows every way by recursion.
use std::io;

fn climb(step: u64, last: u64, n: u64, k: u64) -> u64 {
    if step == n {
        return 1;
    }
    if step > n || (step > 0 && step % k == 0) {
        return 0;
    }
    let mut total = 0;
    for stride in 1..=3 {
        if stride != last {
            total += climb(step + stride, stride, n, k);
        }
    }
    total % 1_000_000_007
}

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let v: Vec<u64> = line.split_whitespace().map(|x| x.parse().unwrap()).collect();
    println!("{}", climb(0, 0, v[0], v[1]));
}
