// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

const P: i64 = 1_000_000_007;

fn power(mut a: i64, mut e: i64) -> i64 {
    let mut r = 1;
    while e > 0 {
        if e & 1 == 1 {
            r = r * a % P;
        }
        a = a * a % P;
        e >>= 1;
    }
    r
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, b, c) = (v[0], v[1], v[2]);
    let mut fact = vec![1i64; n + 1];
    for i in 1..=n {
        fact[i] = fact[i - 1] * i as i64 % P;
    }
    let inv: Vec<i64> = fact.iter().map(|&f| power(f, P - 2)).collect();
    let choose = |m: usize| if m < c { 0 } else { fact[m] * inv[c] % P * inv[m - c] % P };
    let full = (1usize << b) - 1;
    let mut answer = 0i64;
    for same in 0..=full {
        let mut groups = vec![0usize; full + 1];
        for &x in &v[3..3 + n] {
            groups[x & same] += 1;
        }
        let sign = if same.count_ones() % 2 == 0 { 1 } else { P - 1 };
        let sum: i64 = groups.iter().map(|&m| choose(m)).sum::<i64>() % P;
        answer = (answer + sign * sum) % P;
    }
    println!("{}", answer);
}
