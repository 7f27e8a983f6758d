// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: A bool is added to a number without a cast.
use std::io::{self, Read};

fn trips(cars: &[(i64, bool)], deck: i64, h: usize, b: i64) -> Option<usize> {
    let mut count = 1;
    let mut used = 0i64;
    let mut tankers = 0usize;
    for &(len, tanker) in cars {
        let next_tankers = tankers + tanker;
        let gap = if next_tankers > 0 { b } else { 0 };
        if next_tankers <= h && used + len + gap <= deck {
            used += len;
            tankers = next_tankers;
        } else {
            count += 1;
            used = len;
            tankers = tanker as usize;
            if len + if tanker { b } else { 0 } > deck {
                return None;
            }
        }
    }
    Some(count)
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input
        .split_ascii_whitespace()
        .map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap() as usize;
    let h = it.next().unwrap() as usize;
    let b = it.next().unwrap();
    let mut cars = Vec::with_capacity(n);
    for _ in 0..n {
        let len = it.next().unwrap();
        let tanker = it.next().unwrap() == 1;
        cars.push((len, tanker));
    }
    let mut low = 0i64;
    let mut high = cars.iter().map(|c| c.0).sum::<i64>() + b;
    match trips(&cars, high, h, b) {
        Some(t) if t <= k => {}
        _ => {
            println!("-1");
            return;
        }
    }
    while high - low > 1 {
        let mid = low + (high - low) / 2;
        let ok = match trips(&cars, mid, h, b) {
            Some(t) => t <= k,
            None => false,
        };
        if ok {
            high = mid;
        } else {
            low = mid;
        }
    }
    println!("{}", high);
}
