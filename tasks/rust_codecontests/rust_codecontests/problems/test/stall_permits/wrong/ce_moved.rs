// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a vector is moved by a for loop and used again later.
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut it = text.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let s = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let fees: Vec<usize> = (0..s).map(|_| it.next().unwrap() as usize).collect();
    let mut goods: Vec<Vec<(usize, i64)>> = vec![Vec::new(); s];
    for _ in 0..n {
        let stall = it.next().unwrap() as usize - 1;
        let cost = it.next().unwrap() as usize;
        let joy = it.next().unwrap();
        goods[stall].push((cost, joy));
    }
    const NEG: i64 = i64::MIN / 4;
    let mut best = vec![vec![0i64; m + 1]; 2];
    for stall in 0..s {
        let fee = fees[stall];
        let mut inside = vec![vec![NEG; m + 1]; 2];
        for u in 0..2 {
            for w in fee..=m {
                inside[u][w] = best[u][w - fee];
            }
        }
        for (cost, joy) in goods[stall] {
            let half = (cost + 1) / 2;
            for w in (0..=m).rev() {
                if cost <= w {
                    inside[1][w] = inside[1][w].max(inside[1][w - cost] + joy);
                }
                if half <= w {
                    inside[1][w] = inside[1][w].max(inside[0][w - half] + joy);
                }
                if cost <= w {
                    inside[0][w] = inside[0][w].max(inside[0][w - cost] + joy);
                }
            }
        }
        for u in 0..2 {
            for w in 0..=m {
                best[u][w] = best[u][w].max(inside[u][w]);
            }
        }
    }
    println!("{}", best[0][m].max(best[1][m]));
}
