// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io;
use std::io::prelude::*;

fn main() {
    let mut s = String::new();
    io::stdin().read_to_string(&mut s).expect("read");
    let tokens: Vec<&str> = s.split_ascii_whitespace().collect();
    let rows: usize = tokens[0].parse().unwrap();
    let cols: usize = tokens[1].parse().unwrap();
    let cell = |i: usize, j: usize| -> Option<i64> { tokens[2 + i * cols + j].parse().ok() };
    let mut state: Vec<[Option<i64>; 3]> = vec![[None; 3]; cols];
    for j in 0..cols {
        state[j] = [cell(rows - 1, j); 3];
    }
    // state[j][k]: best total from this cell to the bottom when the next step is of kind k
    for i in (0..rows - 1).rev() {
        let last = i + 2 == rows;
        let mut up = vec![[None; 3]; cols];
        for j in 0..cols {
            if let Some(v) = cell(i, j) {
                for k in 0..3usize {
                    let to = j + k;
                    if to < 1 || to > cols {
                        continue;
                    }
                    let below = &state[to - 1];
                    let best = (0..3)
                        .filter(|&x| last || x != k)
                        .filter_map(|x| below[x])
                        .max();
                    up[j][k] = best.map(|b| b + v);
                }
            }
        }
        state = up;
    }
    match state.iter().flat_map(|t| t.iter().flatten()).max() {
        Some(best) => println!("{}", best),
        None => println!("STUCK"),
    }
}
