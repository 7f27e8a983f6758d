// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn overlap(a: i64, b: i64, c: i64, d: i64) -> i64 {
    (b.min(d) - a.max(c)).max(0)
}

fn parse_time(t: &str) -> i64 {
    let mut parts = t.split(':');
    let h: i64 = parts.next().unwrap().parse().unwrap();
    let m: i64 = parts.next().unwrap().parse().unwrap();
    60 * h + m
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let words: Vec<&str> = input.split_whitespace().collect();
    let n: usize = words[0].parse().unwrap();
    let day: i64 = words[1].parse().unwrap();
    let night: i64 = words[2].parse().unwrap();
    let answer: i64 = words[3..3 + n]
        .iter()
        .map(|w| {
            let mut parts = w.split('-');
            let s = parse_time(parts.next().unwrap());
            let mut e = parse_time(parts.next().unwrap());
            if e <= s {
                e += 1440;
            }
            if e - s > 360 {
                e -= 30;
            }
            let light = overlap(s, e, 360, 1320) + overlap(s, e, 1800, 2760);
            light * day + (e - s - light) * night
        })
        .sum();
    println!("{}", answer);
}
