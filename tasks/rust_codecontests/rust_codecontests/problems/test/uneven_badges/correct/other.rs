// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn below(bound: u64, m: usize) -> u64 {
    let digits: Vec<usize> = bound
        .to_string()
        .chars()
        .map(|c| c.to_digit(10).unwrap() as usize)
        .collect();
    // loose[a][b][r] for numbers already smaller than the bound, 10 stands for "no digit yet"
    let mut loose = vec![vec![vec![0u64; m]; 11]; 11];
    let mut tight = Some((10usize, 10usize, 0usize));
    for (i, &x) in digits.iter().enumerate() {
        let mut next = vec![vec![vec![0u64; m]; 11]; 11];
        for a in 0..11 {
            for b in 0..10 {
                for d in 0..10 {
                    if a < 10 && 2 * b == a + d {
                        continue;
                    }
                    for r in 0..m {
                        next[b][d][(r + d) % m] += loose[a][b][r];
                    }
                }
            }
        }
        if i > 0 {
            for d in 1..10 {
                next[10][d][d % m] += 1;
            }
        }
        if let Some((a, b, r)) = tight {
            for d in 0..x {
                if (i == 0 && d == 0) || (a < 10 && 2 * b == a + d) {
                    continue;
                }
                next[b][d][(r + d) % m] += 1;
            }
            tight = if a < 10 && 2 * b == a + x {
                None
            } else {
                Some((b, x, (r + x) % m))
            };
        }
        loose = next;
    }
    loose.iter().flatten().map(|v| v[0]).sum()
}

fn main() {
    let mut s = String::new();
    io::stdin().read_to_string(&mut s).unwrap();
    let v: Vec<u64> = s.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let m = v[2] as usize;
    println!("{}", below(v[1] + 1, m) - below(v[0], m));
}
