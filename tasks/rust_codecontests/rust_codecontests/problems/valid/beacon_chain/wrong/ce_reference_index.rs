// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: indexes vectors with a reference to usize.
use std::collections::VecDeque;
use std::io::{self, Read};

const INF: i64 = i64::MAX / 4;

fn window_min(costs: &Vec<i64>, x: &Vec<i64>, reach: i64) -> Vec<i64> {
    let n = x.len();
    let mut out = vec![INF; n];
    let mut queue: VecDeque<usize> = VecDeque::new();
    for i in 0..n {
        while let Some(&front) = queue.front() {
            if x[i] - x[front] > reach {
                queue.pop_front();
            } else {
                break;
            }
        }
        if let Some(front) = queue.front() {
            out[i] = costs[front];
        }
        while let Some(&back) = queue.back() {
            if costs[back] >= costs[i] {
                queue.pop_back();
            } else {
                break;
            }
        }
        queue.push_back(i);
    }
    out
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut it = text.split_whitespace().map(|t| t.parse::<i64>().unwrap());
    let n = it.next().unwrap() as usize;
    let k = it.next().unwrap() as usize;
    let reach_b = it.next().unwrap();
    let reach_s = it.next().unwrap();
    let (mut x, mut b, mut s) = (vec![0; n], vec![0; n], vec![0; n]);
    for i in 0..n {
        x[i] = it.next().unwrap();
        b[i] = it.next().unwrap();
        s[i] = it.next().unwrap();
    }
    let mut bronze = vec![INF; n];
    let mut silver = vec![INF; n];
    bronze[0] = b[0];
    silver[0] = s[0];
    for _ in 1..k {
        let from_b = window_min(&bronze, &x, reach_b);
        let from_s = window_min(&silver, &x, reach_s);
        for i in 0..n {
            bronze[i] = (from_s[i] + b[i]).min(INF);
            silver[i] = (from_s[i].min(from_b[i]) + s[i]).min(INF);
        }
    }
    let ans = bronze[n - 1].min(silver[n - 1]);
    if ans >= INF {
        println!("-1");
    } else {
        println!("{}", ans);
    }
}
