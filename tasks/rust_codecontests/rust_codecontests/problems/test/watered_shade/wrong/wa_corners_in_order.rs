// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: takes the first corner as the lower left one, but the corners come in any order.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let w = v[0] as usize;
    let rects: Vec<(i64, i64, i64, i64)> = v[2..].chunks(4).map(|c| (c[0], c[1], c[2], c[3])).collect();
    let mut xs: Vec<i64> = rects.iter().flat_map(|r| vec![r.0, r.2]).collect();
    let mut ys: Vec<i64> = rects.iter().flat_map(|r| vec![r.1, r.3]).collect();
    xs.sort();
    xs.dedup();
    ys.sort();
    ys.dedup();
    let mut area = 0i64;
    for i in 0..xs.len() - 1 {
        let mut change = vec![[0i32; 2]; ys.len()];
        for (k, r) in rects.iter().enumerate() {
            if r.0 <= xs[i] && xs[i] < r.2 {
                let kind = if k < w { 0 } else { 1 };
                change[ys.binary_search(&r.1).unwrap()][kind] += 1;
                change[ys.binary_search(&r.3).unwrap()][kind] -= 1;
            }
        }
        let mut now = [0, 0];
        for j in 0..ys.len() - 1 {
            now[0] += change[j][0];
            now[1] += change[j][1];
            if now[0] > 0 && now[1] > 0 {
                area += (xs[i + 1] - xs[i]) * (ys[j + 1] - ys[j]);
            }
        }
    }
    println!("{}", area);
}
