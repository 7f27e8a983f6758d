// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input
        .split_ascii_whitespace()
        .map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let a = it.next().unwrap();
    let b = it.next().unwrap();
    let mut events: Vec<(i64, i64, i64)> = Vec::with_capacity(2 * n);
    for _ in 0..n {
        let s = it.next().unwrap();
        let e = it.next().unwrap();
        let senior = it.next().unwrap();
        events.push((s, 1, senior));
        events.push((e, -1, -senior));
    }
    events.sort_unstable();
    let (mut all, mut seniors) = (0i64, 0i64);
    let (mut total, mut longest) = (0i64, 0i64);
    let mut since: Option<i64> = None;
    let mut i = 0;
    while i < events.len() {
        let time = events[i].0;
        while i < events.len() && events[i].0 == time {
            all += events[i].1;
            seniors += events[i].2;
            i += 1;
        }
        let safe = seniors >= a && all >= b;
        match (since, safe) {
            (None, true) => since = Some(time),
            (Some(start), false) => {
                total += time - start;
                longest = longest.max(time - start);
                since = None;
            }
            _ => {}
        }
    }
    println!("{} {}", total, longest);
}
