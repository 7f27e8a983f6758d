// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: It counts every beginning inside one window, also those that leave fewer than k flavours.
use std::collections::HashMap;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let n = v[0];
    let k = v[1];
    let c = v[2];
    let row = &v[3..3 + n];
    let mut count: HashMap<usize, usize> = HashMap::new();
    let mut left = 0;
    let mut total = 0u64;
    for right in 0..n {
        *count.entry(row[right]).or_insert(0) += 1;
        while count.len() > k || count.get(&row[right]).map_or(false, |&x| x > c) {
            let e = count.get_mut(&row[left]).unwrap();
            *e -= 1;
            if *e == 0 {
                count.remove(&row[left]);
            }
            left += 1;
        }
        if count.len() == k {
            total += (right - left + 1) as u64;
        }
    }
    println!("{}", total);
}
