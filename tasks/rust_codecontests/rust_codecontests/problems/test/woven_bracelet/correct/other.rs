// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io;

const P: u64 = 1_000_000_007;

fn mul(a: &[[u64; 21]; 21], b: &[[u64; 21]; 21]) -> [[u64; 21]; 21] {
    let mut c = [[0u64; 21]; 21];
    for i in 0..21 {
        for j in 0..21 {
            let mut sum = 0u128;
            for k in 0..21 {
                sum += (a[i][k] * b[k][j]) as u128;
            }
            c[i][j] = (sum % P as u128) as u64;
        }
    }
    c
}

fn power(m: &[[u64; 21]; 21], e: u64) -> [[u64; 21]; 21] {
    if e == 1 {
        return *m;
    }
    let half = power(m, e / 2);
    let square = mul(&half, &half);
    if e % 2 == 1 {
        mul(&square, m)
    } else {
        square
    }
}

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let v: Vec<u64> = line
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let mut columns: Vec<u32> = Vec::new();
    for s in 0..(1u32 << v[0]) {
        if s & (s << 1) == 0 {
            columns.push(s);
        }
    }
    let mut m = [[0u64; 21]; 21];
    for (i, a) in columns.iter().enumerate() {
        for (j, b) in columns.iter().enumerate() {
            if a != b && (a & b).count_ones() as u64 <= v[2] {
                m[i][j] = 1;
            }
        }
    }
    let r = power(&m, v[1]);
    let trace: u64 = (0..21).map(|i| r[i][i]).sum();
    println!("{}", trace % P);
}
