// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads the number of minutes as 32 bits.
use std::io::{self, Read};

const MOD: u64 = 1_000_000_007;

type Matrix = Vec<Vec<u64>>;

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    let n = b.len();
    let mut c = vec![vec![0u64; n]; a.len()];
    for i in 0..a.len() {
        for k in 0..n {
            if a[i][k] == 0 {
                continue;
            }
            for j in 0..n {
                c[i][j] = (c[i][j] + a[i][k] * b[k][j]) % MOD;
            }
        }
    }
    c
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut words = text.split_ascii_whitespace();
    let n: usize = words.next().unwrap().parse().unwrap();
    let m: usize = words.next().unwrap().parse().unwrap();
    let mut minutes: u32 = words.next().unwrap().parse().unwrap();
    let mut step: Matrix = vec![vec![0; 3 * n]; 3 * n];
    for _ in 0..m {
        let u: usize = words.next().unwrap().parse().unwrap();
        let v: usize = words.next().unwrap().parse().unwrap();
        let red = if words.next().unwrap() == "R" { 1 } else { 0 };
        for rest in 0..3 {
            step[3 * (u - 1) + rest][3 * (v - 1) + (rest + red) % 3] += 1;
        }
    }
    let mut row: Matrix = vec![vec![0; 3 * n]];
    row[0][0] = 1;
    while minutes > 0 {
        if minutes % 2 == 1 {
            row = times(&row, &step);
        }
        step = times(&step, &step);
        minutes /= 2;
    }
    println!("{}", row[0][3 * (n - 1)]);
}
