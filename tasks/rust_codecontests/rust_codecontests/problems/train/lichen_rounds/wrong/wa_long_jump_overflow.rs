// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: multiplies a feeler by 2^59 in i64 before taking the remainder, which overflows.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: i64 = it.next().unwrap().parse().unwrap();
    let c: i64 = it.next().unwrap().parse().unwrap();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: i64 = it.next().unwrap().parse().unwrap();
    let mut feelers = Vec::new();
    for _ in 0..k {
        let x: i64 = it.next().unwrap().parse().unwrap();
        let y: i64 = it.next().unwrap().parse().unwrap();
        feelers.push((x, y));
    }
    let mut stone: Vec<Vec<u8>> = (0..r)
        .map(|_| it.next().unwrap().bytes().map(|b| b - b'0').collect())
        .collect();
    for bit in 0..60 {
        let jump = 1i64 << bit;
        if t & jump == 0 {
            continue;
        }
        let mut next = vec![vec![0u8; c as usize]; r as usize];
        for &(x, y) in &feelers {
            let dx = (x * jump).rem_euclid(r);
            let dy = (y * jump).rem_euclid(c);
            for i in 0..r {
                for j in 0..c {
                    next[i as usize][j as usize] ^= stone[((i + dx) % r) as usize][((j + dy) % c) as usize];
                }
            }
        }
        stone = next;
    }
    let total: usize = stone.iter().map(|row| row.iter().filter(|&&v| v == 1).count()).sum();
    println!("{}", total);
    for row in stone {
        println!("{}", row.iter().map(|v| v.to_string()).collect::<String>());
    }
}
