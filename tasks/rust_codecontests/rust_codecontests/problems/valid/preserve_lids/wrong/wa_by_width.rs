// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It serves the jars by width, so a narrow jar that could wait takes the lid of one that cannot.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let m = it.next().unwrap() as usize;
    let mut jars: Vec<(i64, i64)> = (0..n)
        .map(|_| {
            let w = it.next().unwrap();
            (w, w + it.next().unwrap())
        })
        .collect();
    let mut lids: Vec<i64> = it.collect();
    jars.sort();
    lids.sort();
    let mut j = 0;
    let mut closed = 0;
    let mut largest = 0;
    for (low, high) in jars {
        while j < m && lids[j] < low {
            j += 1;
        }
        if j < m && lids[j] <= high {
            closed += 1;
            largest = lids[j];
            j += 1;
        }
    }
    println!("{} {}", closed, largest);
}
