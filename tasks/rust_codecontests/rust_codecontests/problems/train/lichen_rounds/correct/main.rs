// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let r: i64 = it.next().unwrap().parse().unwrap();
    let c: i64 = it.next().unwrap().parse().unwrap();
    let k: usize = it.next().unwrap().parse().unwrap();
    let mut t: u64 = it.next().unwrap().parse().unwrap();
    let mut feelers: Vec<(i64, i64)> = (0..k)
        .map(|_| {
            let x: i64 = it.next().unwrap().parse().unwrap();
            let y: i64 = it.next().unwrap().parse().unwrap();
            (x.rem_euclid(r), y.rem_euclid(c))
        })
        .collect();
    let mut stone: Vec<u8> = Vec::new();
    for _ in 0..r {
        stone.extend(it.next().unwrap().bytes().map(|b| b - b'0'));
    }
    let (rows, cols) = (r as usize, c as usize);
    while t > 0 {
        if t & 1 == 1 {
            let mut next = vec![0u8; rows * cols];
            for &(x, y) in &feelers {
                for i in 0..rows {
                    let from = (i + x as usize) % rows;
                    for j in 0..cols {
                        next[i * cols + j] ^= stone[from * cols + (j + y as usize) % cols];
                    }
                }
            }
            stone = next;
        }
        for f in feelers.iter_mut() {
            *f = (f.0 * 2 % r, f.1 * 2 % c);
        }
        t >>= 1;
    }
    println!("{}", stone.iter().filter(|&&v| v == 1).count());
    for row in stone.chunks(cols) {
        println!("{}", row.iter().map(|&v| (b'0' + v) as char).collect::<String>());
    }
}
