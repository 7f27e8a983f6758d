// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: the recursion computes the same pot again for every way of rules that leads to it.
use std::io::{self, Read};

struct Pottery {
    d: Vec<u64>,
    p: Vec<u64>,
    before: Vec<Vec<usize>>,
    open: Vec<bool>,
}

impl Pottery {
    fn finish(&mut self, v: usize) -> Option<u64> {
        if self.open[v] {
            return None;
        }
        self.open[v] = true;
        let mut ready = 0;
        let mut never = false;
        for i in 0..self.before[v].len() {
            let a = self.before[v][i];
            match self.finish(a) {
                Some(t) => ready = ready.max(t),
                None => never = true,
            }
        }
        self.open[v] = false;
        if never {
            return None;
        }
        let start = (ready + self.p[v] - 1) / self.p[v] * self.p[v];
        Some(start + self.d[v])
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<u64> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = nums[0] as usize;
    let d = nums[2..2 + n].to_vec();
    let p = nums[2 + n..2 + 2 * n].to_vec();
    let mut before = vec![Vec::new(); n];
    for rule in nums[2 + 2 * n..].chunks(2) {
        before[rule[1] as usize - 1].push(rule[0] as usize - 1);
    }
    let mut pottery = Pottery { d, p, before, open: vec![false; n] };
    let times: Vec<Option<u64>> = (0..n).map(|v| pottery.finish(v)).collect();
    let never = times.iter().filter(|t| t.is_none()).count();
    if never > 0 {
        println!("-1 {}", never);
        return;
    }
    let last = times.iter().max().unwrap().unwrap();
    println!("{} {}", last, times.iter().filter(|t| **t == Some(last)).count());
}
