// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: tests every cell of the compressed grid against every rectangle, which is cubic.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let w = v[0] as usize;
    let rects: Vec<(i64, i64, i64, i64)> = v[2..]
        .chunks(4)
        .map(|c| (c[0].min(c[2]), c[1].min(c[3]), c[0].max(c[2]), c[1].max(c[3])))
        .collect();
    let mut xs: Vec<i64> = rects.iter().flat_map(|r| vec![r.0, r.2]).collect();
    let mut ys: Vec<i64> = rects.iter().flat_map(|r| vec![r.1, r.3]).collect();
    xs.sort();
    xs.dedup();
    ys.sort();
    ys.dedup();
    let inside = |list: &[(i64, i64, i64, i64)], x: i64, y: i64| {
        list.iter().any(|r| r.0 <= x && x < r.2 && r.1 <= y && y < r.3)
    };
    let mut area = 0i64;
    for i in 0..xs.len() - 1 {
        for j in 0..ys.len() - 1 {
            if inside(&rects[..w], xs[i], ys[j]) && inside(&rects[w..], xs[i], ys[j]) {
                area += (xs[i + 1] - xs[i]) * (ys[j + 1] - ys[j]);
            }
        }
    }
    println!("{}", area);
}
