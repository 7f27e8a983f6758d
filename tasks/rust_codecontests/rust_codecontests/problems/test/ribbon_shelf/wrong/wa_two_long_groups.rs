// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: takes away the arrangements with one group that is too long, but does not add back those with two.
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

fn choose(fact: &[u64], n: usize, k: usize) -> u64 {
    if k > n {
        return 0;
    }
    fact[n] * power(fact[k] * fact[n - k] % P, P - 2) % P
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<usize>().unwrap());
    let q = it.next().unwrap();
    let mut fact = vec![1u64; 300_010];
    for i in 1..fact.len() {
        fact[i] = fact[i - 1] * i as u64 % P;
    }
    for _ in 0..q {
        let r = it.next().unwrap();
        let b = it.next().unwrap();
        let m = it.next().unwrap();
        let k = it.next().unwrap();
        if r == 0 && m == 0 {
            println!("1");
        } else if r == 0 || m == 0 {
            println!("0");
        } else {
            let mut fill = choose(&fact, r - 1, m - 1);
            if r > k {
                let bad = m as u64 * choose(&fact, r - k - 1, m - 1) % P;
                fill = (fill + P - bad) % P;
            }
            println!("{}", fill * choose(&fact, b + 1, m) % P);
        }
    }
}
