// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts the cover of each cell of a compressed grid of up to 12000 * 12000 cells in memory.
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
    let mut grid = vec![vec![[0i32; 2]; ys.len()]; xs.len()];
    for (k, r) in rects.iter().enumerate() {
        let kind = if k < w { 0 } else { 1 };
        let (a, b) = (xs.binary_search(&r.0).unwrap(), xs.binary_search(&r.2).unwrap());
        let (c, d) = (ys.binary_search(&r.1).unwrap(), ys.binary_search(&r.3).unwrap());
        for row in &mut grid[a..b] {
            row[c][kind] += 1;
            row[d][kind] -= 1;
        }
    }
    let mut area = 0i64;
    for i in 0..xs.len() - 1 {
        let mut now = [0, 0];
        for j in 0..ys.len() - 1 {
            now[0] += grid[i][j][0];
            now[1] += grid[i][j][1];
            if now[0] > 0 && now[1] > 0 {
                area += (xs[i + 1] - xs[i]) * (ys[j + 1] - ys[j]);
            }
        }
    }
    println!("{}", area);
}
