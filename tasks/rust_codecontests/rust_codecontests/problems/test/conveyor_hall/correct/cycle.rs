// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn step(grid: &[Vec<u8>], x: usize, y: usize, phase: usize) -> (usize, usize) {
    let (r, c) = (grid.len(), grid[0].len());
    let d = match b"NESW".iter().position(|&s| s == grid[x][y]) {
        Some(d) => (d + phase) % 4,
        None => return (x, y),
    };
    let (u, v) = match d {
        0 => (if x == 0 { r - 1 } else { x - 1 }, y),
        1 => (x, if y + 1 == c { 0 } else { y + 1 }),
        2 => (if x + 1 == r { 0 } else { x + 1 }, y),
        _ => (x, if y == 0 { c - 1 } else { y - 1 }),
    };
    if grid[u][v] == b'#' {
        (x, y)
    } else {
        (u, v)
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().collect()).collect();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: u64 = it.next().unwrap().parse().unwrap();
    let four: Vec<usize> = (0..r * c)
        .map(|cell| {
            let (mut x, mut y) = (cell / c, cell % c);
            for phase in 0..4 {
                let next = step(&grid, x, y, phase);
                x = next.0;
                y = next.1;
            }
            x * c + y
        })
        .collect();
    for _ in 0..k {
        let x: usize = it.next().unwrap().parse().unwrap();
        let y: usize = it.next().unwrap().parse().unwrap();
        let mut cell = (x - 1) * c + y - 1;
        let mut seen = vec![u64::MAX; r * c];
        let mut left = t / 4;
        let mut done = 0;
        while left > 0 {
            if seen[cell] != u64::MAX {
                left %= done - seen[cell];
                seen.iter_mut().for_each(|s| *s = u64::MAX);
                if left == 0 {
                    break;
                }
            }
            seen[cell] = done;
            cell = four[cell];
            done += 1;
            left -= 1;
        }
        let (mut x, mut y) = (cell / c, cell % c);
        for phase in 0..(t % 4) as usize {
            let next = step(&grid, x, y, phase);
            x = next.0;
            y = next.1;
        }
        println!("{} {}", x + 1, y + 1);
    }
}
