// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

type Rect = (i64, i64, i64, i64);

struct Tree<'a> {
    ys: &'a [i64],
    cover: Vec<i32>,
    len: Vec<i64>,
}

impl<'a> Tree<'a> {
    fn add(&mut self, node: usize, l: usize, r: usize, a: usize, b: usize, d: i32) {
        if a <= l && r <= b {
            self.cover[node] += d;
        } else {
            let m = (l + r) / 2;
            if a < m {
                self.add(2 * node, l, m, a, b, d);
            }
            if b > m {
                self.add(2 * node + 1, m, r, a, b, d);
            }
        }
        self.len[node] = if self.cover[node] > 0 {
            self.ys[r] - self.ys[l]
        } else if r - l == 1 {
            0
        } else {
            self.len[2 * node] + self.len[2 * node + 1]
        };
    }
}

fn union(rects: &[Rect]) -> i64 {
    if rects.is_empty() {
        return 0;
    }
    let mut ys: Vec<i64> = rects.iter().flat_map(|r| vec![r.1, r.3]).collect();
    ys.sort();
    ys.dedup();
    let n = ys.len() - 1;
    let mut events = Vec::new();
    for &(x1, y1, x2, y2) in rects {
        let a = ys.binary_search(&y1).unwrap();
        let b = ys.binary_search(&y2).unwrap();
        events.push((x1, 1, a, b));
        events.push((x2, -1, a, b));
    }
    events.sort();
    let mut tree = Tree { ys: &ys, cover: vec![0; 4 * n + 4], len: vec![0; 4 * n + 4] };
    let mut area = 0;
    let mut last = events[0].0;
    for (x, d, a, b) in events {
        area += (x - last) * tree.len[1];
        last = x;
        tree.add(1, 0, n, a, b, d);
    }
    area
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<i64> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let w = v[0] as usize;
    let rects: Vec<Rect> = v[2..]
        .chunks(4)
        .map(|c| (c[0].min(c[2]), c[1].min(c[3]), c[0].max(c[2]), c[1].max(c[3])))
        .collect();
    println!("{}", union(&rects[..w]) - union(&rects) + union(&rects[w..]));
}
