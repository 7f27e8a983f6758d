// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a cell gets lichen if any of its feelers has some instead of an odd number, and the seasons are cut at 5000.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: i64 = it.next().unwrap().parse().unwrap();
    let c: i64 = it.next().unwrap().parse().unwrap();
    let k: usize = it.next().unwrap().parse().unwrap();
    let t: u64 = it.next().unwrap().parse().unwrap();
    let feelers: Vec<(i64, i64)> = (0..k)
        .map(|_| (it.next().unwrap().parse().unwrap(), it.next().unwrap().parse().unwrap()))
        .collect();
    let mut stone: Vec<Vec<char>> = (0..r).map(|_| it.next().unwrap().chars().collect()).collect();
    for _ in 0..t.min(5000) {
        let old = stone.clone();
        for i in 0..r {
            for j in 0..c {
                let any = feelers.iter().any(|&(x, y)| {
                    old[(i + x).rem_euclid(r) as usize][(j + y).rem_euclid(c) as usize] == '1'
                });
                stone[i as usize][j as usize] = if any { '1' } else { '0' };
            }
        }
    }
    let total: usize = stone.iter().map(|row| row.iter().filter(|&&v| v == '1').count()).sum();
    println!("{}", total);
    for row in stone {
        println!("{}", row.into_iter().collect::<String>());
    }
}
