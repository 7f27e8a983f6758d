// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: takes the break off shifts of exactly 6 hours too.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let words: Vec<&str> = input.split_whitespace().collect();
    let n: usize = words[0].parse().unwrap();
    let a: i64 = words[1].parse().unwrap();
    let b: i64 = words[2].parse().unwrap();
    let mut total: i64 = 0;
    for i in 0..n {
        let t: Vec<i64> = words[3 + i]
            .split(|c| c == ':' || c == '-')
            .map(|x| x.parse().unwrap())
            .collect();
        let start = t[0] * 60 + t[1];
        let end = t[2] * 60 + t[3];
        let mut length = (end - start + 1440) % 1440;
        if length == 0 {
            length = 1440;
        }
        if length >= 360 {
            length -= 30;
        }
        for m in start..start + length {
            let m = m % 1440;
            total += if m < 360 || m >= 1320 { b } else { a };
        }
    }
    println!("{}", total);
}
