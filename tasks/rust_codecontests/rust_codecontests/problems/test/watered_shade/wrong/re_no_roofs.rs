// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: takes the first event of each kind, so it panics if there are no zones or no roofs.
use std::io::{self, Read};

type Rect = (i64, i64, i64, i64);

fn union(rects: &[Rect]) -> i64 {
    let mut ys: Vec<i64> = rects.iter().flat_map(|r| vec![r.1, r.3]).collect();
    ys.sort();
    ys.dedup();
    let mut events = Vec::new();
    for r in rects {
        events.push((r.0, 1i32, r.1, r.3));
        events.push((r.2, -1i32, r.1, r.3));
    }
    events.sort();
    let mut change = vec![0i32; ys.len()];
    let mut last = events[0].0;
    let mut length = 0;
    let mut area = 0;
    for &(x, d, low, high) in &events {
        if x > last {
            area += (x - last) * length;
            last = x;
        }
        change[ys.binary_search(&low).unwrap()] += d;
        change[ys.binary_search(&high).unwrap()] -= d;
        let mut now = 0;
        length = 0;
        for j in 0..ys.len() - 1 {
            now += change[j];
            if now > 0 {
                length += ys[j + 1] - ys[j];
            }
        }
    }
    area
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let w = v[0] as usize;
    let rects: Vec<Rect> = v[2..]
        .chunks(4)
        .map(|c| (c[0].min(c[2]), c[1].min(c[3]), c[0].max(c[2]), c[1].max(c[3])))
        .collect();
    println!("{}", union(&rects[..w]) - union(&rects) + union(&rects[w..]));
}
