// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: counts lattice points instead of area by adding one to each difference.
use std::collections::HashSet;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let w = v[0] as usize;
    let s = v[1] as usize;
    if w == 0 || s == 0 {
        println!("0");
        return;
    }
    let rects: Vec<(i64, i64, i64, i64)> = v[2..]
        .chunks(4)
        .map(|c| (c[0].min(c[2]), c[1].min(c[3]), c[0].max(c[2]), c[1].max(c[3])))
        .collect();
    if w == 1 && s == 1 {
        let dx = rects[0].2.min(rects[1].2) - rects[0].0.max(rects[1].0) + 1;
        let dy = rects[0].3.min(rects[1].3) - rects[0].1.max(rects[1].1) + 1;
        println!("{}", dx.max(0) * dy.max(0));
        return;
    }
    let mut sets = [HashSet::new(), HashSet::new()];
    for (k, r) in rects.iter().enumerate() {
        let set = if k < w { &mut sets[0] } else { &mut sets[1] };
        for x in r.0..=r.2 {
            for y in r.1..=r.3 {
                set.insert((x, y));
            }
        }
    }
    println!("{}", sets[0].intersection(&sets[1]).count());
}
