// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads T as u32, so parsing panics for large T.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().collect()).collect();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: u32 = it.next().unwrap().parse().unwrap();
    for _ in 0..k {
        let mut x = it.next().unwrap().parse::<usize>().unwrap() - 1;
        let mut y = it.next().unwrap().parse::<usize>().unwrap() - 1;
        for s in 0..t as usize {
            let d = match grid[x][y] {
                b'N' => 0,
                b'E' => 1,
                b'S' => 2,
                b'W' => 3,
                _ => break,
            };
            let (u, v) = match (d + s) % 4 {
                0 => ((x + r - 1) % r, y),
                1 => (x, (y + 1) % c),
                2 => ((x + 1) % r, y),
                _ => (x, (y + c - 1) % c),
            };
            if grid[u][v] != b'#' {
                x = u;
                y = v;
            }
        }
        println!("{} {}", x + 1, y + 1);
    }
}
