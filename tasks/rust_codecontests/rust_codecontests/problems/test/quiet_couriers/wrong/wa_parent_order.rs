// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it handles members by increasing number, although a supervisor may have a larger number than his subordinate.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let p: Vec<usize> = (0..n).map(|_| it.next().unwrap() as usize).collect();
    let d: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let q: Vec<i64> = (0..n).map(|_| it.next().unwrap()).collect();
    let mut time = vec![-1i64; n + 1];
    let mut turn = vec![0i64; n + 1];
    let mut count = 0;
    let mut last = -1;
    let mut who = 0;
    for i in 1..=n {
        let parent = p[i - 1];
        if parent == 0 {
            time[i] = 0;
        } else {
            turn[parent] += 1;
            if time[parent] >= 0 && q[parent - 1] == 0 {
                time[i] = time[parent] + turn[parent] * d[parent - 1];
            }
        }
        if time[i] >= 0 {
            count += 1;
            if time[i] > last {
                last = time[i];
                who = i;
            }
        }
    }
    println!("{} {} {}", count, last, who);
}
