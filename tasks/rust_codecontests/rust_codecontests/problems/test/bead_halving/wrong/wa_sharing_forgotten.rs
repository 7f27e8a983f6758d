// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: leaves the sharing move out of the nim values and of the count.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m) = (v[0], v[1]);
    let wall = &v[2..2 + m];
    let bowls = &v[2 + m..2 + m + n];
    let mut g = vec![0usize; 5001];
    for s in 1..=5000 {
        let mut seen = vec![false; m + 2];
        for &t in wall {
            if t <= s {
                seen[g[s - t]] = true;
            }
        }
        while seen[g[s]] {
            g[s] += 1;
        }
    }
    let mut x = 0;
    for &s in bowls {
        x ^= g[s];
    }
    let mut answer = 0;
    for &s in bowls {
        for &t in wall {
            if t <= s && x ^ g[s] ^ g[s - t] == 0 {
                answer += 1;
            }
        }
    }
    println!("{}", answer);
}
