// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<i64>().unwrap());
    let w = it.next().unwrap() as usize;
    let s = it.next().unwrap() as usize;
    let mut events = Vec::new();
    let mut ys = Vec::new();
    for i in 0..w + s {
        let x1 = it.next().unwrap();
        let y1 = it.next().unwrap();
        let x2 = it.next().unwrap();
        let y2 = it.next().unwrap();
        let kind = if i < w { 0 } else { 1 };
        events.push((x1.min(x2), y1.min(y2), y1.max(y2), kind, 1i16));
        events.push((x1.max(x2), y1.min(y2), y1.max(y2), kind, -1i16));
        ys.push(y1);
        ys.push(y2);
    }
    events.sort();
    ys.sort();
    ys.dedup();
    let mut change = vec![[0i16; 2]; ys.len()];
    let mut area = 0i64;
    let mut height = 0i64;
    let mut i = 0;
    while i < events.len() {
        let x = events[i].0;
        if i > 0 {
            area += height * (x - events[i - 1].0);
        }
        while i < events.len() && events[i].0 == x {
            let (_, low, high, kind, d) = events[i];
            change[ys.binary_search(&low).unwrap()][kind] += d;
            change[ys.binary_search(&high).unwrap()][kind] -= d;
            i += 1;
        }
        height = 0;
        let mut now = [0i16; 2];
        for j in 0..ys.len() - 1 {
            now[0] += change[j][0];
            now[1] += change[j][1];
            let both = (now[0] > 0) & (now[1] > 0);
            height += both as i64 * (ys[j + 1] - ys[j]);
        }
    }
    println!("{}", area);
}
