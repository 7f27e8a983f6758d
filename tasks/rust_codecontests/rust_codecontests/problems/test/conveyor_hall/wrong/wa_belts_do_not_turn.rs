// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: forgets that the belts turn after every step.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().collect()).collect();
    let k: usize = it.next().unwrap().parse().unwrap();
    let mut t: u64 = it.next().unwrap().parse().unwrap();
    let mut next = vec![0; r * c];
    for i in 0..r {
        for j in 0..c {
            let (x, y) = match grid[i][j] {
                b'N' => ((i + r - 1) % r, j),
                b'E' => (i, (j + 1) % c),
                b'S' => ((i + 1) % r, j),
                b'W' => (i, (j + c - 1) % c),
                _ => (i, j),
            };
            next[i * c + j] = if grid[x][y] == b'#' { i * c + j } else { x * c + y };
        }
    }
    let mut pos = Vec::new();
    for _ in 0..k {
        let x: usize = it.next().unwrap().parse().unwrap();
        let y: usize = it.next().unwrap().parse().unwrap();
        pos.push((x - 1) * c + y - 1);
    }
    while t > 0 {
        if t % 2 == 1 {
            for p in pos.iter_mut() {
                *p = next[*p];
            }
        }
        next = next.iter().map(|&q| next[q]).collect();
        t /= 2;
    }
    for p in pos {
        println!("{} {}", p / c + 1, p % c + 1);
    }
}
