// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: always cuts the neighbouring pair with the greatest product at the moment.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let d = nums[1];
    let mut a: Vec<i64> = nums[2..].to_vec();
    let mut total: i64 = 0;
    loop {
        let mut best = 0;
        let mut place = a.len();
        for i in 1..a.len() {
            let p = a[i - 1] * a[i];
            if (a[i - 1] - a[i]).abs() <= d && p > best {
                best = p;
                place = i;
            }
        }
        if place == a.len() {
            break;
        }
        total += best;
        a.drain(place - 1..=place);
    }
    println!("{}", total);
}
