// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: indexes vectors by i64.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: i64 = it.next().unwrap().parse().unwrap();
    let c: i64 = it.next().unwrap().parse().unwrap();
    let k: i64 = it.next().unwrap().parse().unwrap();
    let mut t: u64 = it.next().unwrap().parse().unwrap();
    let mut feelers: Vec<(i64, i64)> = Vec::new();
    for _ in 0..k {
        let x: i64 = it.next().unwrap().parse().unwrap();
        let y: i64 = it.next().unwrap().parse().unwrap();
        feelers.push((x.rem_euclid(r), y.rem_euclid(c)));
    }
    let mut stone: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().map(|b| b - b'0').collect()).collect();
    while t > 0 {
        if t % 2 == 1 {
            let old = stone.clone();
            for i in 0..r {
                for j in 0..c {
                    stone[i][j] = 0;
                    for &(x, y) in &feelers {
                        stone[i][j] ^= old[(i + x) % r][(j + y) % c];
                    }
                }
            }
        }
        for f in feelers.iter_mut() {
            *f = (f.0 * 2 % r, f.1 * 2 % c);
        }
        t /= 2;
    }
    println!("{}", stone.iter().flatten().filter(|&&v| v == 1).count());
    for row in stone {
        println!("{}", row.iter().map(|&v| (v + b'0') as char).collect::<String>());
    }
}
