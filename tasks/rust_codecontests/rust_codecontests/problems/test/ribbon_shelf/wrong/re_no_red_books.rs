// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: computes r - 1 and m - 1 for r = 0 or m = 0, which wraps around and is out of the table.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;

fn power(mut a: u64, mut e: u64) -> u64 {
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
    let n = 300_005;
    let mut fact = vec![1u64; n + 1];
    for i in 1..=n {
        fact[i] = fact[i - 1] * i as u64 % P;
    }
    let mut inv = vec![1u64; n + 1];
    inv[n] = power(fact[n], P - 2);
    for i in (0..n).rev() {
        inv[i] = inv[i + 1] * (i as u64 + 1) % P;
    }
    let c = |n: usize, k: usize| if k > n { 0 } else { fact[n] * inv[k] % P * inv[n - k] % P };
    for s in v[1..].chunks(4) {
        let (r, b, m, k) = (s[0], s[1], s[2], s[3]);
        let mut sum = c(r - 1, m - 1);
        for j in 1..=m {
            if j * k + 1 > r {
                break;
            }
            let term = c(m, j) * c(r - 1 - j * k, m - 1) % P;
            sum = if j % 2 == 0 { sum + term } else { sum + P - term } % P;
        }
        println!("{}", sum * c(b + 1, m) % P);
    }
}
