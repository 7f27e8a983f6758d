// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

const P: u64 = 1_000_000_007;

#[derive(Clone)]
struct Map {
    rows: Vec<Vec<u64>>,
}

impl Map {
    fn unit() -> Map {
        Map { rows: (0..5).map(|i| (0..5).map(|j| (i == j) as u64).collect()).collect() }
    }
    fn then(&self, next: &Map) -> Map {
        let rows = next
            .rows
            .iter()
            .map(|r| (0..5).map(|j| (0..5).fold(0, |s, k| (s + r[k] * self.rows[k][j]) % P)).collect())
            .collect();
        Map { rows }
    }
    fn repeat(&self, k: u64) -> Map {
        if k == 0 {
            return Map::unit();
        }
        let half = self.repeat(k / 2);
        let full = half.then(&half);
        if k % 2 == 1 {
            full.then(self)
        } else {
            full
        }
    }
}

fn block(lines: &[Vec<String>], at: &mut usize) -> Map {
    let mut map = Map::unit();
    while *at < lines.len() {
        let line = &lines[*at];
        *at += 1;
        let reg = |i: usize| "abcd".find(line[i].as_str()).unwrap();
        let val = |i: usize| line[i].parse::<u64>().unwrap();
        match line[0].as_str() {
            "end" => break,
            "loop" => {
                let body = block(lines, at);
                map = map.then(&body.repeat(val(1)));
            }
            "add" => {
                let row = map.rows[reg(2)].clone();
                for (p, q) in map.rows[reg(1)].iter_mut().zip(row) {
                    *p = (*p + q) % P;
                }
            }
            "inc" => {
                let p = &mut map.rows[reg(1)][4];
                *p = (*p + val(2)) % P;
            }
            "mul" => map.rows[reg(1)].iter_mut().for_each(|p| *p = *p * val(2) % P),
            "set" => map.rows[reg(1)] = vec![0, 0, 0, 0, val(2)],
            _ => map.rows.swap(reg(1), reg(2)),
        }
    }
    map
}

fn main() {
    let lines: Vec<Vec<String>> = io::stdin()
        .lock()
        .lines()
        .map(|l| l.unwrap().split_whitespace().map(String::from).collect())
        .collect();
    let mut start: Vec<u64> = lines[1].iter().map(|x| x.parse().unwrap()).collect();
    start.push(1);
    let n: usize = lines[0][0].parse().unwrap();
    let map = block(&lines[2..2 + n], &mut 0);
    for r in &map.rows[..4] {
        print!("{} ", (0..5).fold(0, |s, k| (s + r[k] * start[k]) % P));
    }
    println!();
}
