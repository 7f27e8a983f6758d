// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: moves the vector of rectangles into another one and uses it again, so it does not compile.
use std::io::{self, Read};

type Rect = (i64, i64, i64, i64);

fn union(rects: Vec<Rect>) -> i64 {
    let mut xs: Vec<i64> = rects.iter().flat_map(|r| vec![r.0, r.2]).collect();
    xs.sort();
    xs.dedup();
    let mut area = 0;
    for pair in xs.windows(2) {
        let mut spans: Vec<(i64, i64)> =
            rects.iter().filter(|r| r.0 <= pair[0] && r.2 >= pair[1]).map(|r| (r.1, r.3)).collect();
        spans.sort();
        let mut top = i64::MIN;
        for (low, high) in spans {
            if high > top {
                area += (high - low.max(top)) * (pair[1] - pair[0]);
                top = high;
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
    let zones = rects[..w].to_vec();
    let roofs = rects[w..].to_vec();
    let mut all = zones;
    all.extend(roofs);
    println!("{}", union(zones) + union(roofs) - union(all));
}
