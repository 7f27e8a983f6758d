// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: casts negative coordinates to usize before the remainder, which gives a wrong row or column.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let k: usize = it.next().unwrap().parse().unwrap();
    let mut t: u64 = it.next().unwrap().parse().unwrap();
    let mut feelers: Vec<(usize, usize)> = Vec::new();
    for _ in 0..k {
        let x: i64 = it.next().unwrap().parse().unwrap();
        let y: i64 = it.next().unwrap().parse().unwrap();
        feelers.push((x as usize % r, y as usize % c));
    }
    let mut stone: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().map(|b| b - b'0').collect()).collect();
    while t > 0 {
        if t % 2 == 1 {
            let mut next = vec![vec![0u8; c]; r];
            for i in 0..r {
                for j in 0..c {
                    for &(x, y) in &feelers {
                        next[i][j] ^= stone[(i + x) % r][(j + y) % c];
                    }
                }
            }
            stone = next;
        }
        for f in feelers.iter_mut() {
            *f = (f.0 * 2 % r, f.1 * 2 % c);
        }
        t /= 2;
    }
    let total: u64 = stone.iter().flatten().map(|&v| v as u64).sum();
    println!("{}", total);
    for row in stone {
        println!("{}", row.iter().map(|&v| (v + b'0') as char).collect::<String>());
    }
}
