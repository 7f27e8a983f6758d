// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: looks at every number.
use std::io;

fn steady(mut x: u64) -> bool {
    let mut sum = 0;
    let mut largest = 0;
    while x > 0 {
        sum += x % 10;
        largest = largest.max(x % 10);
        x /= 10;
    }
    sum % largest == 0
}

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let v: Vec<u64> = line.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let mut count: u64 = 0;
    for x in v[0]..=v[1] {
        if steady(x) {
            count += 1;
        }
    }
    println!("{}", count);
}
