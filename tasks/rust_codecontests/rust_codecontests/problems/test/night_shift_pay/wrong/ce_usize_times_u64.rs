// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: multiplies a count of type usize with a rate of type u64 without a cast.
use std::io::{self, Read};

fn minutes(s: &str) -> usize {
    let h: usize = s[0..2].parse().unwrap();
    let m: usize = s[3..5].parse().unwrap();
    h * 60 + m
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let a: u64 = it.next().unwrap().parse().unwrap();
    let b: u64 = it.next().unwrap().parse().unwrap();
    let mut total: u64 = 0;
    for _ in 0..n {
        let w = it.next().unwrap();
        let s = minutes(&w[0..5]);
        let mut e = minutes(&w[6..11]);
        if e <= s {
            e += 1440;
        }
        if e - s > 360 {
            e -= 30;
        }
        let night = (s..e).filter(|t| t % 1440 >= 1320 || t % 1440 < 360).count();
        let day = e - s - night;
        total += day * a + night * b;
    }
    println!("{}", total);
}
