// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::BTreeMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let a = it.next().unwrap() as usize;
    let b = it.next().unwrap() as usize;
    let d = it.next().unwrap();
    let h: Vec<i64> = it.take(n).collect();
    let mut window: BTreeMap<i64, usize> = BTreeMap::new();
    let mut start = 0;
    let mut total: u64 = 0;
    for end in 0..n {
        *window.entry(h[end]).or_insert(0) += 1;
        loop {
            let low = *window.keys().next().unwrap();
            let high = *window.keys().next_back().unwrap();
            if high - low <= d && end - start + 1 <= b {
                break;
            }
            let count = window.get_mut(&h[start]).unwrap();
            *count -= 1;
            if *count == 0 {
                window.remove(&h[start]);
            }
            start += 1;
        }
        let len = end - start + 1;
        if len >= a {
            total += (len - a + 1) as u64;
        }
    }
    println!("{}", total);
}
