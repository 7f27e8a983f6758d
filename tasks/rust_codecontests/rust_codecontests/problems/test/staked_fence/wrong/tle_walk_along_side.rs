// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: tests each whole x of a side, which is up to 2 * 10^9 steps for one side.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let mut pts = Vec::new();
    for _ in 0..n {
        let x = it.next().unwrap();
        let y = it.next().unwrap();
        pts.push((x, y));
    }
    pts.push(pts[0]);
    let mut stakes = n as i64;
    let mut gates = 0;
    for w in pts.windows(2) {
        let dx = (w[1].0 - w[0].0).abs();
        let dy = (w[1].1 - w[0].1).abs();
        let mut inner = 0;
        if dx == 0 {
            inner = dy - 1;
        } else {
            for step in 1..dx {
                if (step * dy) % dx == 0 {
                    inner += 1;
                }
            }
        }
        stakes += inner;
        gates += inner % 2;
    }
    println!("{} {}", stakes, gates);
}
