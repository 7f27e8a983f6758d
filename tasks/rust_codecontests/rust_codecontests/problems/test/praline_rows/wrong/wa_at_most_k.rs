// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It counts pieces with at most k flavours instead of exactly k.
use std::collections::HashMap;
use std::io::{self, Read};

fn at_most(v: &[usize], kinds: usize, k: usize, c: usize) -> u64 {
    let mut count = vec![0usize; kinds];
    let mut distinct = 0;
    let mut left = 0;
    let mut total = 0u64;
    for right in 0..v.len() {
        let x = v[right];
        if count[x] == 0 {
            distinct += 1;
        }
        count[x] += 1;
        while distinct > k || count[x] > c {
            let y = v[left];
            count[y] -= 1;
            if count[y] == 0 {
                distinct -= 1;
            }
            left += 1;
        }
        total += (right + 1 - left) as u64;
    }
    total
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input
        .split_ascii_whitespace()
        .map(|x| x.parse::<usize>().unwrap());
    let n = it.next().unwrap();
    let k = it.next().unwrap();
    let c = it.next().unwrap();
    let mut ids = HashMap::new();
    let mut v = Vec::with_capacity(n);
    for _ in 0..n {
        let flavour = it.next().unwrap();
        let next = ids.len();
        v.push(*ids.entry(flavour).or_insert(next));
    }
    println!("{}", at_most(&v, ids.len(), k, c));
}
