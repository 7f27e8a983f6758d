// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: uses VecDeque without importing it, so it does not compile.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, a, b, d) = (v[0] as usize, v[1], v[2], v[3]);
    let h = &v[4..4 + n];
    let mut high: VecDeque<usize> = VecDeque::new();
    let mut low: VecDeque<usize> = VecDeque::new();
    let mut start = 0;
    let mut total = 0i64;
    for end in 0..n {
        while !high.is_empty() && h[*high.back().unwrap()] <= h[end] {
            high.pop_back();
        }
        while !low.is_empty() && h[*low.back().unwrap()] >= h[end] {
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
