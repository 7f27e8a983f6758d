// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

struct Fenwick {
    t: Vec<i32>,
}

impl Fenwick {
    fn add(&mut self, mut i: usize, d: i32) {
        i += 1;
        while i < self.t.len() {
            self.t[i] += d;
            i += i & i.wrapping_neg();
        }
    }

    fn below(&self, mut i: usize) -> i32 {
        let mut s = 0;
        while i > 0 {
            s += self.t[i];
            i &= i - 1;
        }
        s
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<u64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, k, d) = (v[0] as usize, v[1] as usize, v[2]);
    let h = &v[3..3 + n];
    let mut sorted = h.to_vec();
    sorted.sort();
    sorted.dedup();
    let rank = |x: u64| sorted.partition_point(|&y| y < x);
    let mut tree = Fenwick { t: vec![0; sorted.len() + 1] };
    let mut sum = 0u64;
    let mut most = 0;
    let mut person = 1;
    for j in 0..n {
        if j > k {
            tree.add(rank(h[j - k - 1]), -1);
        }
        let inside = j.min(k) as i32;
        let grief = inside - tree.below(rank(h[j] + d));
        sum += grief as u64;
        if grief > most {
            most = grief;
            person = j + 1;
        }
        tree.add(rank(h[j]), 1);
    }
    println!("{} {}", sum, person);
}
