// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: simulates all T steps one by one, hopeless for T up to 10^15.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<char>> = (0..r).map(|_| it.next().unwrap().chars().collect()).collect();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: u64 = it.next().unwrap().parse().unwrap();
    let mut boxes: Vec<(usize, usize)> = Vec::new();
    for _ in 0..k {
        let x: usize = it.next().unwrap().parse().unwrap();
        let y: usize = it.next().unwrap().parse().unwrap();
        boxes.push((x - 1, y - 1));
    }
    for s in 0..t {
        for b in boxes.iter_mut() {
            let d = match grid[b.0][b.1] {
                'N' => 0,
                'E' => 1,
                'S' => 2,
                'W' => 3,
                _ => continue,
            };
            let d = (d + s % 4) % 4;
            let (x, y) = match d {
                0 => ((b.0 + r - 1) % r, b.1),
                1 => (b.0, (b.1 + 1) % c),
                2 => ((b.0 + 1) % r, b.1),
                _ => (b.0, (b.1 + c - 1) % c),
            };
            if grid[x][y] != '#' {
                *b = (x, y);
            }
        }
    }
    for b in boxes {
        println!("{} {}", b.0 + 1, b.1 + 1);
    }
}
