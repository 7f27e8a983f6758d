// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: adds i32 offsets to usize coordinates without converting them.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().collect()).collect();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: u64 = it.next().unwrap().parse().unwrap();
    let dx: [i32; 4] = [-1, 0, 1, 0];
    let dy: [i32; 4] = [0, 1, 0, -1];
    let mut next = vec![vec![0usize; r * c]; 4];
    for phase in 0..4 {
        for i in 0..r {
            for j in 0..c {
                next[phase][i * c + j] = i * c + j;
                if let Some(d) = b"NESW".iter().position(|&s| s == grid[i][j]) {
                    let d = (d + phase) % 4;
                    let x = (i + dx[d] + r) % r;
                    let y = (j + dy[d] + c) % c;
                    if grid[x][y] != b'#' {
                        next[phase][i * c + j] = x * c + y;
                    }
                }
            }
        }
    }
    for _ in 0..k {
        let x: usize = it.next().unwrap().parse().unwrap();
        let y: usize = it.next().unwrap().parse().unwrap();
        let mut p = (x - 1) * c + y - 1;
        for s in 0..t {
            p = next[(s % 4) as usize][p];
        }
        println!("{} {}", p / c + 1, p % c + 1);
    }
}
