// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn find(p: &mut Vec<usize>, v: usize) -> usize {
    let mut root = v;
    while p[root] != root {
        root = p[root];
    }
    let mut x = v;
    while p[x] != root {
        let next = p[x];
        p[x] = root;
        x = next;
    }
    root
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let m: usize = it.next().unwrap().parse().unwrap();
    let mut edges: Vec<(i64, usize, usize, bool)> = Vec::new();
    for _ in 0..m {
        let a: usize = it.next().unwrap().parse().unwrap();
        let b: usize = it.next().unwrap().parse().unwrap();
        let w: i64 = it.next().unwrap().parse().unwrap();
        let red = it.next().unwrap() == "R";
        edges.push((w, a - 1, b - 1, red));
    }
    edges.sort();
    let mut p: Vec<usize> = (0..n).collect();
    let mut tree: Vec<Vec<(usize, i64)>> = vec![Vec::new(); n];
    let mut total = 0i64;
    let mut used = 0;
    let mut count = [0usize; 2];
    let mut offers = [0usize; 2];
    for &(w, a, b, red) in &edges {
        offers[red as usize] += 1;
        let (x, y) = (find(&mut p, a), find(&mut p, b));
        if x != y {
            p[x] = y;
            tree[a].push((b, w));
            tree[b].push((a, w));
            total += w;
            used += 1;
            count[red as usize] += 1;
        }
    }
    if used + 1 < n || offers[0] == 0 || offers[1] == 0 {
        println!("-1");
        return;
    }
    if count[0] > 0 && count[1] > 0 {
        println!("{}", total);
        return;
    }
    let missing = count[1] == 0;
    let log = 14;
    let mut up = vec![vec![0usize; n]; log];
    let mut best = vec![vec![0i64; n]; log];
    let mut depth = vec![usize::MAX; n];
    depth[0] = 0;
    let mut stack = vec![0];
    while let Some(v) = stack.pop() {
        for &(u, w) in &tree[v] {
            if depth[u] == usize::MAX {
                depth[u] = depth[v] + 1;
                up[0][u] = v;
                best[0][u] = w;
                stack.push(u);
            }
        }
    }
    for k in 1..log {
        for v in 0..n {
            let mid = up[k - 1][v];
            up[k][v] = up[k - 1][mid];
            best[k][v] = best[k - 1][v].max(best[k - 1][mid]);
        }
    }
    let mut add = i64::MAX;
    for &(w, a, b, red) in &edges {
        if red != missing {
            continue;
        }
        let (mut x, mut y, mut top) = (a, b, 0i64);
        if depth[x] < depth[y] {
            std::mem::swap(&mut x, &mut y);
        }
        for k in (0..log).rev() {
            if depth[x] - depth[y] >= 1 << k {
                top = top.max(best[k][x]);
                x = up[k][x];
            }
        }
        for k in (0..log).rev() {
            if up[k][x] != up[k][y] {
                top = top.max(best[k][x]).max(best[k][y]);
                x = up[k][x];
                y = up[k][y];
            }
        }
        if x != y {
            top = top.max(best[0][x]).max(best[0][y]);
        }
        if n == 2 {
            top = 0;
        }
        add = add.min(w - top);
    }
    println!("{}", total + add);
}
