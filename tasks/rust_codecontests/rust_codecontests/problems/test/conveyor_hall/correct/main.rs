// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<&[u8]> = (0..r).map(|_| it.next().unwrap().as_bytes()).collect();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: u64 = it.next().unwrap().parse().unwrap();
    let size = r * c;
    let mut jump = vec![0usize; 4 * size];
    for phase in 0..4 {
        for i in 0..r {
            for j in 0..c {
                let base = match grid[i][j] {
                    b'N' => Some(0),
                    b'E' => Some(1),
                    b'S' => Some(2),
                    b'W' => Some(3),
                    _ => None,
                };
                let (mut x, mut y) = (i, j);
                if let Some(d) = base {
                    match (d + phase) % 4 {
                        0 => x = (i + r - 1) % r,
                        1 => y = (j + 1) % c,
                        2 => x = (i + 1) % r,
                        _ => y = (j + c - 1) % c,
                    }
                    if grid[x][y] == b'#' {
                        x = i;
                        y = j;
                    }
                }
                jump[phase * size + i * c + j] = (phase + 1) % 4 * size + x * c + y;
            }
        }
    }
    let mut pos: Vec<usize> = (0..k)
        .map(|_| {
            let x: usize = it.next().unwrap().parse().unwrap();
            let y: usize = it.next().unwrap().parse().unwrap();
            (x - 1) * c + y - 1
        })
        .collect();
    let mut left = t;
    while left > 0 {
        if left & 1 == 1 {
            for p in pos.iter_mut() {
                *p = jump[*p];
            }
        }
        jump = jump.iter().map(|&s| jump[s]).collect();
        left >>= 1;
    }
    let mut out = String::new();
    for p in pos {
        let cell = p % size;
        out.push_str(&format!("{} {}\n", cell / c + 1, cell % c + 1));
    }
    print!("{}", out);
}
