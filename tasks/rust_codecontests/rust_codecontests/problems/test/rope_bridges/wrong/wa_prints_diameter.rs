// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it prints the largest distance within the group, not the largest distance from the wanderer's island.
use std::io::{self, Read};

fn find(p: &mut Vec<usize>, mut v: usize) -> usize {
    while p[v] != v {
        p[v] = p[p[v]];
        v = p[v];
    }
    v
}

struct Forest {
    up: Vec<Vec<usize>>,
    depth: Vec<usize>,
    far: Vec<i64>,
}

impl Forest {
    fn new(adj: &Vec<Vec<(usize, i64)>>) -> Forest {
        let n = adj.len();
        let mut up = vec![vec![0; n]; 14];
        let mut depth = vec![usize::MAX; n];
        let mut far = vec![0i64; n];
        for s in 0..n {
            if depth[s] != usize::MAX {
                continue;
            }
            depth[s] = 0;
            up[0][s] = s;
            let mut stack = vec![s];
            while let Some(v) = stack.pop() {
                for &(u, w) in &adj[v] {
                    if depth[u] == usize::MAX {
                        depth[u] = depth[v] + 1;
                        far[u] = far[v] + w;
                        up[0][u] = v;
                        stack.push(u);
                    }
                }
            }
        }
        for k in 1..14 {
            for v in 0..n {
                up[k][v] = up[k - 1][up[k - 1][v]];
            }
        }
        Forest { up, depth, far }
    }

    fn dist(&self, a: usize, b: usize) -> i64 {
        let (mut x, mut y) = if self.depth[a] >= self.depth[b] { (a, b) } else { (b, a) };
        let diff = self.depth[x] - self.depth[y];
        for k in 0..14 {
            if diff >> k & 1 == 1 {
                x = self.up[k][x];
            }
        }
        for k in (0..14).rev() {
            if self.up[k][x] != self.up[k][y] {
                x = self.up[k][x];
                y = self.up[k][y];
            }
        }
        let top = if x == y { x } else { self.up[0][x] };
        self.far[a] + self.far[b] - 2 * self.far[top]
    }
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let q: usize = it.next().unwrap().parse().unwrap();
    let mut events: Vec<(usize, usize, bool)> = Vec::new();
    let mut adj = vec![Vec::new(); n];
    let mut p: Vec<usize> = (0..n).collect();
    for _ in 0..q {
        let kind = it.next().unwrap();
        let u = it.next().unwrap().parse::<usize>().unwrap() - 1;
        if kind == "F" {
            events.push((u, u, true));
            continue;
        }
        let v = it.next().unwrap().parse::<usize>().unwrap() - 1;
        let w: i64 = it.next().unwrap().parse().unwrap();
        let (a, b) = (find(&mut p, u), find(&mut p, v));
        if a != b {
            p[a] = b;
            adj[u].push((v, w));
            adj[v].push((u, w));
            events.push((u, v, false));
        }
    }
    let forest = Forest::new(&adj);
    let mut p: Vec<usize> = (0..n).collect();
    let mut ends: Vec<(i64, usize, usize)> = (0..n).map(|i| (0, i, i)).collect();
    let mut out = String::new();
    for (u, v, ask) in events {
        let a = find(&mut p, u);
        if ask {
            let (x, y) = (ends[a].1, ends[a].2);
            out.push_str(&format!("{}\n", forest.dist(x, y)));
            continue;
        }
        let b = find(&mut p, v);
        let mut best = ends[a].max(ends[b]);
        for x in [ends[a].1, ends[a].2] {
            for y in [ends[b].1, ends[b].2] {
                best = best.max((forest.dist(x, y), x, y));
            }
        }
        p[a] = b;
        ends[b] = best;
    }
    print!("{}", out);
}
