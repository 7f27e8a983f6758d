// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
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

struct Choose {
    fact: Vec<u64>,
    inv: Vec<u64>,
}

impl Choose {
    fn new(n: usize) -> Self {
        let mut fact = vec![1u64; n + 1];
        for i in 1..=n {
            fact[i] = fact[i - 1] * i as u64 % P;
        }
        let mut inv = vec![1u64; n + 1];
        inv[n] = power(fact[n], P - 2);
        for i in (0..n).rev() {
            inv[i] = inv[i + 1] * (i as u64 + 1) % P;
        }
        Choose { fact, inv }
    }

    fn get(&self, n: usize, k: usize) -> u64 {
        if k > n {
            return 0;
        }
        self.fact[n] * self.inv[k] % P * self.inv[n - k] % P
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<usize>().unwrap());
    let q = it.next().unwrap();
    let c = Choose::new(300_001);
    for _ in 0..q {
        let r = it.next().unwrap();
        let b = it.next().unwrap();
        let m = it.next().unwrap();
        let k = it.next().unwrap();
        if r == 0 || m == 0 {
            println!("{}", if r == 0 && m == 0 { 1 } else { 0 });
            continue;
        }
        let mut sum = 0u64;
        let mut j = 0;
        while j <= m && j * k + 1 <= r {
            let term = c.get(m, j) * c.get(r - 1 - j * k, m - 1) % P;
            sum = if j % 2 == 0 { sum + term } else { sum + P - term } % P;
            j += 1;
        }
        println!("{}", sum * c.get(b + 1, m) % P);
    }
}
