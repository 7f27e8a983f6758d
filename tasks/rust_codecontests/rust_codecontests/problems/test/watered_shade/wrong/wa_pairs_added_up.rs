// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: adds up the overlap of every zone with every roof, so ground under several of them counts repeatedly.
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
    let mut area = 0i64;
    for a in &rects[..w] {
        for b in &rects[w..] {
            let dx = a.2.min(b.2) - a.0.max(b.0);
            let dy = a.3.min(b.3) - a.1.max(b.1);
            if dx > 0 && dy > 0 {
                area += dx * dy;
            }
        }
    }
    println!("{}", area);
}
