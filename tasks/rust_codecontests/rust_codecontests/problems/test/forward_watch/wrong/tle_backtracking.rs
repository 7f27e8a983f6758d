// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it tries all choices of guards by backtracking, which is exponential.
use std::io::{self, Read};

struct Search {
    k: usize,
    f: Vec<usize>,
    c: Vec<u64>,
    guards: Vec<u32>,
    best: u64,
}

impl Search {
    fn go(&mut self, i: usize, cost: u64) {
        if cost >= self.best {
            return;
        }
        let mut i = i;
        while i < self.f.len() {
            let mut v = i;
            let mut ok = false;
            for _ in 0..self.k {
                ok = ok || self.guards[v] > 0;
                v = self.f[v];
            }
            if !ok {
                break;
            }
            i += 1;
        }
        if i == self.f.len() {
            self.best = cost;
            return;
        }
        let mut v = i;
        for _ in 0..self.k {
            self.guards[v] += 1;
            let next = cost + self.c[v];
            self.go(i + 1, next);
            self.guards[v] -= 1;
            v = self.f[v];
        }
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<u64> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = nums[0] as usize;
    let k = nums[1] as usize;
    let f = nums[2..2 + n].iter().map(|&x| x as usize - 1).collect();
    let c = nums[2 + n..].to_vec();
    let mut s = Search { k, f, c, guards: vec![0; n], best: u64::MAX };
    s.go(0, 0);
    println!("{}", s.best);
}
