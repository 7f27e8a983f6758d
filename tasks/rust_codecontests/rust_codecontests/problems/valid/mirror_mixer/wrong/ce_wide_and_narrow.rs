// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: mixes u128 and u64 in one multiplication, so it does not compile.
use std::io::{self, Read};

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn power(a: u64, mut e: u64, m: u64) -> u64 {
    let mut base = a % m;
    let mut r: u64 = 1 % m;
    while e > 0 {
        if e & 1 == 1 {
            r = (r as u128 * base % m as u128) as u64;
        }
        base = (base as u128 * base as u128 % m as u128) as u64;
        e >>= 1;
    }
    r
}

fn primes(mut n: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut p = 2;
    while p * p <= n {
        if n % p == 0 {
            found.push(p);
            while n % p == 0 {
                n /= p;
            }
        }
        p += 1;
    }
    if n > 1 {
        found.push(n);
    }
    found
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<u64>().unwrap());
    let q = it.next().unwrap();
    for _ in 0..q {
        let a = it.next().unwrap();
        let m = it.next().unwrap();
        if gcd(a, m) != 1 {
            println!("0");
            continue;
        }
        let mut order = primes(m).iter().fold(m, |x, p| x / p * (p - 1));
        for p in primes(order) {
            while order % p == 0 && power(a, order / p, m) == 1 % m {
                order /= p;
            }
        }
        if order % 2 == 0 && power(a, order / 2, m) == m - 1 {
            order /= 2;
        }
        println!("{}", order);
    }
}
