// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

struct Dsu {
    parent: Vec<usize>,
    size: Vec<usize>,
}

impl Dsu {
    fn new(n: usize) -> Self {
        Dsu { parent: (0..n).collect(), size: vec![1; n] }
    }

    fn find(&mut self, mut v: usize) -> usize {
        while self.parent[v] != v {
            self.parent[v] = self.parent[self.parent[v]];
            v = self.parent[v];
        }
        v
    }

    fn union(&mut self, a: usize, b: usize) {
        let (mut a, mut b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        if self.size[a] < self.size[b] {
            std::mem::swap(&mut a, &mut b);
        }
        self.parent[b] = a;
        self.size[a] += self.size[b];
    }
}

fn main() {
    let stdin = io::stdin();
    let tokens: Vec<String> =
        stdin.lock().lines().flat_map(|l| l.unwrap().split_whitespace().map(String::from).collect::<Vec<_>>()).collect();
    let n: usize = tokens[0].parse().unwrap();
    let m: usize = tokens[1].parse().unwrap();
    let w: Vec<u64> = tokens[2..2 + n].iter().map(|x| x.parse().unwrap()).collect();
    let mut dsu = Dsu::new(2 * n);
    for wish in tokens[2 + n..].chunks(3).take(m) {
        let a = wish[1].parse::<usize>().unwrap() - 1;
        let b = wish[2].parse::<usize>().unwrap() - 1;
        if wish[0] == "S" {
            dsu.union(a, b);
            dsu.union(a + n, b + n);
        } else {
            dsu.union(a, b + n);
            dsu.union(a + n, b);
        }
    }
    let mut sums = vec![0u64; 2 * n];
    for i in 0..n {
        let (x, y) = (dsu.find(i), dsu.find(i + n));
        if x == y {
            println!("-1");
            return;
        }
        sums[x] += w[i];
    }
    let mut total = 0;
    let mut done = vec![false; 2 * n];
    for i in 0..n {
        let (x, y) = (dsu.find(i), dsu.find(i + n));
        if !done[x] {
            done[x] = true;
            done[y] = true;
            total += sums[x].max(sums[y]);
        }
    }
    println!("{}", total);
}
