// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: forgets the leaps of b rows and a columns.
use std::collections::VecDeque;
use std::io::{self, Read};

struct Edge {
    to: usize,
    room: i64,
}

struct Network {
    edges: Vec<Edge>,
    from: Vec<Vec<usize>>,
    depth: Vec<usize>,
    next: Vec<usize>,
}

impl Network {
    fn new(nodes: usize) -> Network {
        Network { edges: Vec::new(), from: vec![Vec::new(); nodes], depth: Vec::new(), next: Vec::new() }
    }

    fn add(&mut self, u: usize, v: usize, room: i64) {
        self.from[u].push(self.edges.len());
        self.edges.push(Edge { to: v, room });
        self.from[v].push(self.edges.len());
        self.edges.push(Edge { to: u, room: 0 });
    }

    fn level(&mut self, source: usize) {
        self.depth = vec![usize::MAX; self.from.len()];
        self.depth[source] = 0;
        let mut queue = VecDeque::from(vec![source]);
        while let Some(u) = queue.pop_front() {
            for &e in &self.from[u] {
                let v = self.edges[e].to;
                if self.edges[e].room > 0 && self.depth[v] == usize::MAX {
                    self.depth[v] = self.depth[u] + 1;
                    queue.push_back(v);
                }
            }
        }
    }

    fn push(&mut self, u: usize, sink: usize, most: i64) -> i64 {
        if u == sink {
            return most;
        }
        while self.next[u] < self.from[u].len() {
            let e = self.from[u][self.next[u]];
            let (v, room) = (self.edges[e].to, self.edges[e].room);
            if room > 0 && self.depth[v] == self.depth[u] + 1 {
                let flow = self.push(v, sink, most.min(room));
                if flow > 0 {
                    self.edges[e].room -= flow;
                    self.edges[e ^ 1].room += flow;
                    return flow;
                }
            }
            self.next[u] += 1;
        }
        0
    }

    fn largest_flow(&mut self, source: usize, sink: usize) -> i64 {
        let mut total = 0;
        loop {
            self.level(source);
            if self.depth[sink] == usize::MAX {
                return total;
            }
            self.next = vec![0; self.from.len()];
            loop {
                let flow = self.push(source, sink, i64::MAX);
                if flow == 0 {
                    break;
                }
                total += flow;
            }
        }
    }
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<i64> = text.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
    let (h, w, a, b) = (v[0], v[1], v[2], v[3]);
    let value = |r: i64, c: i64| v[(4 + r * w + c) as usize];
    let mut leaps: Vec<(i64, i64)> = Vec::new();
    for (x, y) in [(a, b)] {
        for leap in [(x, y), (-x, y), (x, -y), (-x, -y)] {
            if !leaps.contains(&leap) {
                leaps.push(leap);
            }
        }
    }
    let source = (h * w) as usize;
    let sink = source + 1;
    let mut network = Network::new(sink + 1);
    let mut total = 0;
    for r in 0..h {
        for c in 0..w {
            if value(r, c) == 0 {
                continue;
            }
            total += value(r, c);
            let square = (r * w + c) as usize;
            if (r + c) % 2 == 1 {
                network.add(square, sink, value(r, c));
                continue;
            }
            network.add(source, square, value(r, c));
            for &(x, y) in &leaps {
                let (s, t) = (r + x, c + y);
                if s >= 0 && s < h && t >= 0 && t < w && value(s, t) > 0 {
                    network.add(square, (s * w + t) as usize, i64::MAX / 2);
                }
            }
        }
    }
    println!("{}", total - network.largest_flow(source, sink));
}
