// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: tries all orders by recursion.
use std::io::{self, Read};

struct Market {
    n: usize,
    goods: Vec<u64>,
    ways: Vec<Vec<u64>>,
    best: u64,
}

impl Market {
    fn go(&mut self, at: usize, visited: usize, k: u64, cost: u64) {
        if k as usize == self.n {
            self.best = self.best.min(cost);
            return;
        }
        for next in 0..self.n {
            if visited & (1 << next) == 0 && self.ways[at][next] != 0 {
                let more = self.ways[at][next] + (k + 1) * self.goods[next];
                self.go(next, visited | 1 << next, k + 1, cost + more);
            }
        }
    }
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<u64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = v[0] as usize;
    let goods = v[1 + n..1 + 2 * n].to_vec();
    let ways = v[1 + 2 * n..].chunks(n).map(|row| row.to_vec()).collect();
    let mut market = Market { n, goods, ways, best: u64::MAX };
    for start in 0..n {
        let cost = v[1 + start] + market.goods[start];
        market.go(start, 1 << start, 1, cost);
    }
    if market.best == u64::MAX {
        println!("-1");
    } else {
        println!("{}", market.best);
    }
}
