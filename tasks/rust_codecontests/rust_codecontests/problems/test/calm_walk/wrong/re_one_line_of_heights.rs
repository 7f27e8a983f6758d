// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads the heights from the second line only, although they may be broken over several lines.
use std::collections::VecDeque;
use std::io::{self, BufRead};

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines();
    let first: Vec<i64> =
        lines.next().unwrap().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let h: Vec<i64> =
        lines.next().unwrap().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, a, b, d) = (first[0] as usize, first[1], first[2], first[3]);
    let mut high: VecDeque<usize> = VecDeque::new();
    let mut low: VecDeque<usize> = VecDeque::new();
    let mut start = 0;
    let mut total = 0i64;
    for end in 0..n {
        while !high.is_empty() && h[high[high.len() - 1]] <= h[end] {
            high.pop_back();
        }
        while !low.is_empty() && h[low[low.len() - 1]] >= h[end] {
            low.pop_back();
        }
        high.push_back(end);
        low.push_back(end);
        while h[high[0]] - h[low[0]] > d {
            start += 1;
            if high[0] < start {
                high.pop_front();
            }
            if low[0] < start {
                low.pop_front();
            }
        }
        let longest = ((end - start + 1) as i64).min(b);
        total += (longest - a + 1).max(0);
    }
    println!("{}", total);
}
