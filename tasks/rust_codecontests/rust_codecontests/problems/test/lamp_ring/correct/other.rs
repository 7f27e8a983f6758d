// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

struct Ring {
    size: usize,
    steps: Vec<i64>,
}

impl Ring {
    fn new(size: usize) -> Self {
        Ring {
            size,
            steps: vec![0; 2 * size + 1],
        }
    }

    fn add(&mut self, start: usize, count: usize, amount: i64) {
        let laps = (count / self.size) as i64;
        self.steps[0] += laps * amount;
        self.steps[self.size] -= laps * amount;
        self.steps[start] += amount;
        self.steps[start + count % self.size] -= amount;
    }

    fn levels(&self) -> Vec<i64> {
        let mut result = vec![0; self.size];
        let mut current = 0;
        for i in 0..2 * self.size {
            current += self.steps[i];
            result[i % self.size] += current;
        }
        result
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let mut ring = Ring::new(v[0] as usize);
    for op in v[2..].chunks(3) {
        ring.add(op[0] as usize - 1, op[1] as usize, op[2]);
    }
    let levels = ring.levels();
    let best = *levels.iter().max().unwrap();
    let at = levels.iter().position(|&x| x == best).unwrap() + 1;
    let lit = levels.iter().filter(|&&x| x > 0).count();
    println!("{} {} {}", best, at, lit);
}
